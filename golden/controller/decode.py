"""Instruction decoder: turns each instruction word into a Python function, once.

The function executes the instruction on a hart at a pc and returns the next pc. If it raises `Trap`, it has changed
nothing, except that a store across two words may have written the first word. A destination x0 is replaced by
`DISCARD`, an extra register that is never read.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple, Protocol

from neuroncore_rtl.golden.controller.arithmetic import CONDITIONS, RISCV_OPERATIONS, WORD_MASK
from neuroncore_rtl.golden.controller.csr import ControlRegisters, UnknownRegister
from neuroncore_rtl.golden.controller.trap import Cause, Trap
from neuroncore_rtl.spec.riscv import (
    BRANCHES,
    FUNCT3,
    FUNCT7,
    IMMEDIATE_OPERATIONS,
    IMMEDIATES,
    LOADS,
    RD,
    REGISTER_OPERATIONS,
    RS1,
    RS2,
    SHIFTS,
    STORES,
    Opcode,
    System,
)

__all__ = ["DISCARD", "RiscvInstruction", "decode_riscv"]

DISCARD = 32
"""Index of the register that receives results for x0."""

_SIZES = {"lb": (1, True), "lh": (2, True), "lw": (4, False), "lbu": (1, False), "lhu": (2, False)}
LOAD_SIZES = {LOADS[name]: size for name, size in _SIZES.items()}
"""Loads by funct3: bytes, and whether the value is sign-extended."""

STORE_SIZES = {STORES["sb"]: 1, STORES["sh"]: 2, STORES["sw"]: 4}
"""Stores by funct3: bytes."""


class State(Protocol):
    """Interface of `golden.controller.hart.Hart` that the functions of instructions use."""

    x: list[int]
    csr: ControlRegisters
    waiting: bool

    def load(self, address: int, size: int) -> int:
        """Return an unsigned value."""
        ...

    def store(self, address: int, size: int, value: int) -> None:
        """Write a value."""


class RiscvInstruction(NamedTuple):
    """Destination register (0 if none), and function of hart and pc that executes the instruction and returns a pc."""

    rd: int
    execute: Callable[[State, int], int]


_REGISTER = {code: RISCV_OPERATIONS[name] for name, code in REGISTER_OPERATIONS.items()}
"""Register-register operations by funct7 and funct3."""

_IMMEDIATE = {funct3: RISCV_OPERATIONS[name.replace("i", "")] for name, funct3 in IMMEDIATE_OPERATIONS.items()}
"""Operations with a 12-bit immediate by funct3."""

_SHIFT = {code: RISCV_OPERATIONS[name.removesuffix("i")] for name, code in SHIFTS.items()}
"""Shifts by an immediate distance, by funct7 and funct3."""

_CONDITION = {funct3: CONDITIONS[name] for name, funct3 in BRANCHES.items()}
"""Branch conditions by funct3."""


@lru_cache(maxsize=1 << 16)
def decode_riscv(word: int) -> RiscvInstruction:
    """Decode an instruction word; an illegal word gives an instruction that raises the trap when executed."""
    form = _FORMS.get(word & 0x7F)
    execute = form(word) if form else None
    if execute is None:
        return RiscvInstruction(0, lambda hart, pc: _illegal(word))
    return RiscvInstruction(0 if word & 0x7F in _WITHOUT_RD else word >> RD & 31, execute)


def _illegal(word: int):
    raise Trap(Cause.ILLEGAL, word)


def _extended(value: int, bits: int) -> int:
    sign = 1 << bits - 1
    return ((value & (1 << bits) - 1 ^ sign) - sign) & WORD_MASK


def _immediate_of(form: str, word: int) -> int:
    parts = IMMEDIATES[form]
    value = sum((word >> place & (1 << width) - 1) << bit for place, width, bit in parts)
    return _extended(value, max(bit + width for _, width, bit in parts))


def _fields(word: int) -> tuple[int, int, int, int, int]:
    return word >> RD & 31 or DISCARD, word >> FUNCT3 & 7, word >> RS1 & 31, word >> RS2 & 31, word >> FUNCT7


def _upper(word: int):
    rd, value = word >> RD & 31 or DISCARD, _immediate_of("U", word)

    def lui(hart, pc):
        hart.x[rd] = value
        return pc + 4

    def auipc(hart, pc):
        hart.x[rd] = pc + value & WORD_MASK
        return pc + 4

    return lui if word & 0x20 else auipc


def _target(target: int) -> int:
    if target & 3:
        raise Trap(Cause.FETCH_MISALIGNED, target)
    return target


def _jal(word: int):
    rd = word >> RD & 31 or DISCARD
    offset = _immediate_of("J", word)

    def jal(hart, pc):
        target = _target(pc + offset & WORD_MASK)
        hart.x[rd] = pc + 4 & WORD_MASK
        return target

    return jal


def _jalr(word: int):
    rd, funct3, rs1, _, _ = _fields(word)
    offset = _immediate_of("I", word)

    def jalr(hart, pc):
        target = _target(hart.x[rs1] + offset & WORD_MASK & ~1)
        hart.x[rd] = pc + 4 & WORD_MASK
        return target

    return jalr if funct3 == 0 else None


def _branch(word: int):
    _, funct3, rs1, rs2, _ = _fields(word)
    if funct3 not in _CONDITION:
        return None
    holds = _CONDITION[funct3]
    offset = _immediate_of("B", word)

    def branch(hart, pc):
        x = hart.x
        return _target(pc + offset & WORD_MASK) if holds(x[rs1], x[rs2]) else pc + 4

    return branch


def _load(word: int):
    rd, funct3, rs1, _, _ = _fields(word)
    if funct3 not in LOAD_SIZES:
        return None
    size, extends = LOAD_SIZES[funct3]
    offset = _immediate_of("I", word)

    def load(hart, pc):
        value = hart.load(hart.x[rs1] + offset & WORD_MASK, size)
        hart.x[rd] = _extended(value, 8 * size) if extends else value
        return pc + 4

    return load


def _store(word: int):
    _, funct3, rs1, rs2, _ = _fields(word)
    if funct3 not in STORE_SIZES:
        return None
    size = STORE_SIZES[funct3]
    mask = (1 << 8 * size) - 1
    offset = _immediate_of("S", word)

    def store(hart, pc):
        x = hart.x
        hart.store(x[rs1] + offset & WORD_MASK, size, x[rs2] & mask)
        return pc + 4

    return store


def _immediate(word: int):
    rd, funct3, rs1, shift, funct7 = _fields(word)
    if funct3 in _IMMEDIATE:
        operation, b = _IMMEDIATE[funct3], _immediate_of("I", word)
    else:
        operation, b = _SHIFT.get((funct7, funct3)), shift
    if operation is None:
        return None

    def immediate(hart, pc):
        x = hart.x
        x[rd] = operation(x[rs1], b)
        return pc + 4

    return immediate


def _register(word: int):
    rd, funct3, rs1, rs2, funct7 = _fields(word)
    operation = _REGISTER.get((funct7, funct3))
    if operation is None:
        return None

    def register(hart, pc):
        x = hart.x
        x[rd] = operation(x[rs1], x[rs2])
        return pc + 4

    return register


def _fence(word: int):
    # FENCE and FENCE.I are no-ops: a single in-order hart that decodes current memory contents.
    return (lambda hart, pc: pc + 4) if word >> 12 & 7 <= 1 else None


def _system(word: int):
    if word >> 12 & 7 == 0:
        return _PRIVILEGED.get(word)
    if word >> 12 & 3 == 0:
        return None
    rd, funct3, source, _, _ = _fields(word)
    number, immediate = word >> 20, bool(funct3 & 4)
    writes = funct3 & 3 == 1 or source != 0

    def access(hart, pc):
        csr = hart.csr
        operand = source if immediate else hart.x[source]
        try:
            old = csr.read(number)
            if writes:
                csr.check_writable(number)
        except UnknownRegister:
            _illegal(word)
        if writes:
            csr.write(number, operand if funct3 & 3 == 1 else old | operand if funct3 & 3 == 2 else old & ~operand)
        hart.x[rd] = old
        return pc + 4

    return access


def _ecall(hart, pc):
    raise Trap(Cause.ENVIRONMENT_CALL, 0)


def _ebreak(hart, pc):
    raise Trap(Cause.BREAKPOINT, pc)


def _mret(hart, pc):
    return hart.csr.leave()


def _wfi(hart, pc):
    hart.waiting = True
    return pc + 4


_PRIVILEGED: dict[int, Callable] = {System.ECALL: _ecall, System.EBREAK: _ebreak, System.MRET: _mret, System.WFI: _wfi}

_FORMS: dict[int, Callable] = {
    Opcode.LOAD: _load,
    Opcode.MISC_MEM: _fence,
    Opcode.OP_IMM: _immediate,
    Opcode.AUIPC: _upper,
    Opcode.STORE: _store,
    Opcode.OP: _register,
    Opcode.LUI: _upper,
    Opcode.BRANCH: _branch,
    Opcode.JALR: _jalr,
    Opcode.JAL: _jal,
    Opcode.SYSTEM: _system,
}
"""By opcode, the decoder of an instruction's `execute`; it returns None for an illegal instruction."""

_WITHOUT_RD = (Opcode.MISC_MEM, Opcode.STORE, Opcode.BRANCH)
"""Opcodes without a destination in bits 11:7; those of FENCE are reserved."""
