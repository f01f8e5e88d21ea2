"""RISC-V instruction words from their fields, as the unprivileged specification lays them out."""

__all__ = ["b_type", "i_type", "j_type", "load_constant", "r_type", "s_type", "u_type"]


def r_type(opcode: int, rd: int, funct3: int, rs1: int, rs2: int, funct7: int) -> int:
    """Return an instruction on two registers."""
    return funct7 << 25 | rs2 << 20 | rs1 << 15 | funct3 << 12 | rd << 7 | opcode


def i_type(opcode: int, rd: int, funct3: int, rs1: int, immediate: int) -> int:
    """Return an instruction on a register and 12 bits."""
    return (immediate & 0xFFF) << 20 | rs1 << 15 | funct3 << 12 | rd << 7 | opcode


def s_type(opcode: int, funct3: int, rs1: int, rs2: int, immediate: int) -> int:
    """Return a store."""
    return (immediate >> 5 & 0x7F) << 25 | rs2 << 20 | rs1 << 15 | funct3 << 12 | (immediate & 0x1F) << 7 | opcode


def b_type(opcode: int, funct3: int, rs1: int, rs2: int, offset: int) -> int:
    """Return a branch."""
    high = (offset >> 12 & 1) << 6 | offset >> 5 & 0x3F
    low = (offset >> 1 & 0xF) << 1 | offset >> 11 & 1
    return high << 25 | rs2 << 20 | rs1 << 15 | funct3 << 12 | low << 7 | opcode


def u_type(opcode: int, rd: int, value: int) -> int:
    """Return LUI or AUIPC; the lower 12 bits of `value` are left out."""
    return value & 0xFFFF_F000 | rd << 7 | opcode


def j_type(opcode: int, rd: int, offset: int) -> int:
    """Return JAL."""
    bits = (offset >> 20 & 1) << 19 | (offset >> 1 & 0x3FF) << 9 | (offset >> 11 & 1) << 8 | offset >> 12 & 0xFF
    return bits << 12 | rd << 7 | opcode


def load_constant(rd: int, value: int) -> list[int]:
    """Return LUI and ADDI that put a word into a register."""
    return [u_type(0x37, rd, value + 0x800 & 0xFFFF_FFFF), i_type(0x13, rd, 0, rd, value)]
