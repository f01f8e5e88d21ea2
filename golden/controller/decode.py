"""Instruction words as functions: a word is decoded once, wherever and however often it is executed.

`decode` returns a function of the hart and its pc that executes the instruction and returns the next pc, or raises
`Trap` and has then changed nothing but the first part of a store in two parts. A destination x0 becomes `DISCARD`, a
place behind the registers that nothing reads.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from neuroncore_rtl.golden.controller.arithmetic import BRANCHES, IMMEDIATE, MULTIPLY_DIVIDE, REGISTER, WORD
from neuroncore_rtl.golden.controller.csr import UnknownRegister
from neuroncore_rtl.golden.controller.trap import Cause, Trap

if TYPE_CHECKING:
    from neuroncore_rtl.golden.controller.hart import Hart

__all__ = ["DISCARD", "Instruction", "decode"]

DISCARD = 32
"""Where a result for x0 goes."""

LOAD_SIZES = {0: (1, True), 1: (2, True), 2: (4, False), 4: (1, False), 5: (2, False)}
"""LB, LH, LW, LBU, LHU by funct3: bytes, and whether their sign is extended."""

STORE_SIZES = {0: 1, 1: 2, 2: 4}
"""SB, SH, SW by funct3."""

ECALL, EBREAK, MRET, WFI = 0x0000_0073, 0x0010_0073, 0x3020_0073, 0x1050_0073


class Instruction(NamedTuple):
    """A decoded instruction.

    Arguments:
        rd: the register it writes, 0 if none.
        execute: executes it on a hart at a pc and returns the next pc.
    """

    rd: int
    execute: Callable[["Hart", int], int]


@lru_cache(maxsize=1 << 16)
def decode(word: int) -> Instruction:
    """Return what an instruction word does; words that are no instruction raise the trap when they are executed."""
    form = _FORMS.get(word & 0x7F)
    execute = form(word) if form else None
    if execute is None:
        return Instruction(0, lambda hart, pc: _illegal(word))
    return Instruction(0 if word & 0x7F in _WITHOUT_RD else word >> 7 & 31, execute)


def _illegal(word: int):
    raise Trap(Cause.ILLEGAL, word)


def _extended(value: int, bits: int) -> int:
    """Return the lowest `bits` bits of `value` as a word, their sign extended."""
    sign = 1 << bits - 1
    return ((value & (1 << bits) - 1 ^ sign) - sign) & WORD


def _fields(word: int) -> tuple[int, int, int, int, int]:
    """Return the destination's place, funct3, rs1, rs2, funct7."""
    return word >> 7 & 31 or DISCARD, word >> 12 & 7, word >> 15 & 31, word >> 20 & 31, word >> 25


def _upper(word: int):
    rd, value = word >> 7 & 31 or DISCARD, word & 0xFFFF_F000

    def lui(hart, pc):
        hart.x[rd] = value
        return pc + 4

    def auipc(hart, pc):
        hart.x[rd] = pc + value & WORD
        return pc + 4

    return lui if word & 0x20 else auipc


def _target(target: int) -> int:
    if target & 3:
        raise Trap(Cause.FETCH_MISALIGNED, target)
    return target


def _jal(word: int):
    rd = word >> 7 & 31 or DISCARD
    offset = _extended(
        (word >> 31) << 20 | (word >> 12 & 0xFF) << 12 | (word >> 20 & 1) << 11 | (word >> 21 & 0x3FF) << 1, 21
    )

    def jal(hart, pc):
        target = _target(pc + offset & WORD)
        hart.x[rd] = pc + 4 & WORD
        return target

    return jal


def _jalr(word: int):
    rd, funct3, rs1, _, _ = _fields(word)
    offset = _extended(word >> 20, 12)

    def jalr(hart, pc):
        target = _target(hart.x[rs1] + offset & WORD & ~1)
        hart.x[rd] = pc + 4 & WORD
        return target

    return jalr if funct3 == 0 else None


def _branch(word: int):
    _, funct3, rs1, rs2, _ = _fields(word)
    if funct3 not in BRANCHES:
        return None
    holds = BRANCHES[funct3]
    offset = _extended(
        (word >> 31) << 12 | (word >> 7 & 1) << 11 | (word >> 25 & 0x3F) << 5 | (word >> 8 & 0xF) << 1, 13
    )

    def branch(hart, pc):
        x = hart.x
        return _target(pc + offset & WORD) if holds(x[rs1], x[rs2]) else pc + 4

    return branch


def _load(word: int):
    rd, funct3, rs1, _, _ = _fields(word)
    if funct3 not in LOAD_SIZES:
        return None
    size, extends = LOAD_SIZES[funct3]
    offset = _extended(word >> 20, 12)

    def load(hart, pc):
        value = hart.load(hart.x[rs1] + offset & WORD, size)
        hart.x[rd] = _extended(value, 8 * size) if extends else value
        return pc + 4

    return load


def _store(word: int):
    _, funct3, rs1, rs2, _ = _fields(word)
    if funct3 not in STORE_SIZES:
        return None
    size = STORE_SIZES[funct3]
    mask = (1 << 8 * size) - 1
    offset = _extended(word >> 25 << 5 | word >> 7 & 31, 12)

    def store(hart, pc):
        x = hart.x
        hart.store(x[rs1] + offset & WORD, size, x[rs2] & mask)
        return pc + 4

    return store


def _immediate(word: int):
    rd, funct3, rs1, shift, funct7 = _fields(word)
    if funct3 in IMMEDIATE:
        operation, b = IMMEDIATE[funct3], _extended(word >> 20, 12)
    else:
        operation, b = REGISTER.get((funct3, funct7)), shift

    def immediate(hart, pc):
        x = hart.x
        x[rd] = operation(x[rs1], b)
        return pc + 4

    return immediate if operation else None


def _register(word: int):
    rd, funct3, rs1, rs2, funct7 = _fields(word)
    operation = REGISTER.get((funct3, funct7)) or MULTIPLY_DIVIDE.get((funct3, funct7))

    def register(hart, pc):
        x = hart.x
        x[rd] = operation(x[rs1], x[rs2])
        return pc + 4

    return register if operation else None


def _fence(word: int):
    # One hart that executes in order, and decodes what memory holds now, has nothing to do for FENCE or FENCE.I.
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


_PRIVILEGED = {ECALL: _ecall, EBREAK: _ebreak, MRET: _mret, WFI: _wfi}

_FORMS = {
    0x03: _load,
    0x0F: _fence,
    0x13: _immediate,
    0x17: _upper,
    0x23: _store,
    0x33: _register,
    0x37: _upper,
    0x63: _branch,
    0x67: _jalr,
    0x6F: _jal,
    0x73: _system,
}
"""By opcode what makes the function of an instruction, or None if there is no such instruction."""

_WITHOUT_RD = (0x0F, 0x23, 0x63)
"""Opcodes whose bits 11:7 name no destination, FENCE's being reserved."""
