"""RISC-V instruction words, encoded from their fields."""

from neuroncore_rtl.spec.riscv import FUNCT3, FUNCT7, IMMEDIATES, RD, RS1, RS2, Opcode

__all__ = ["b_type", "i_type", "j_type", "load_constant", "r_type", "s_type", "u_type"]


def r_type(opcode: int, rd: int, funct3: int, rs1: int, rs2: int, funct7: int) -> int:
    """Return a register instruction."""
    return funct7 << FUNCT7 | rs2 << RS2 | rs1 << RS1 | funct3 << FUNCT3 | rd << RD | opcode


def i_type(opcode: int, rd: int, funct3: int, rs1: int, immediate: int) -> int:
    """Return an instruction with an immediate."""
    return _immediate("I", immediate) | rs1 << RS1 | funct3 << FUNCT3 | rd << RD | opcode


def s_type(opcode: int, funct3: int, rs1: int, rs2: int, immediate: int) -> int:
    """Return a store."""
    return _immediate("S", immediate) | rs2 << RS2 | rs1 << RS1 | funct3 << FUNCT3 | opcode


def b_type(opcode: int, funct3: int, rs1: int, rs2: int, offset: int) -> int:
    """Return a branch."""
    return _immediate("B", offset) | rs2 << RS2 | rs1 << RS1 | funct3 << FUNCT3 | opcode


def u_type(opcode: int, rd: int, value: int) -> int:
    """Return LUI or AUIPC; the lower 12 bits of `value` are dropped."""
    return _immediate("U", value) | rd << RD | opcode


def j_type(opcode: int, rd: int, offset: int) -> int:
    """Return JAL."""
    return _immediate("J", offset) | rd << RD | opcode


def load_constant(rd: int, value: int) -> list[int]:
    """Return instructions that load a word into a register."""
    return [u_type(Opcode.LUI, rd, value + 0x800), i_type(Opcode.OP_IMM, rd, 0, rd, value)]


def _immediate(form: str, value: int) -> int:
    return sum((value >> bit & (1 << width) - 1) << place for place, width, bit in IMMEDIATES[form])
