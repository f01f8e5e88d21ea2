"""RV32IM arithmetic: one equation per operation, on unsigned 32-bit words."""

__all__ = ["CONDITIONS", "RISCV_OPERATIONS", "WORD_MASK", "signed"]

WORD_MASK = 0xFFFF_FFFF


def signed(a: int) -> int:
    """Return the value of a 32-bit word in two's complement."""
    return (a ^ 0x8000_0000) - 0x8000_0000


def _divide(a: int, b: int) -> int:
    if b == 0:
        return WORD_MASK
    quotient = abs(signed(a)) // abs(signed(b))  # truncates; -2**31 / -1 wraps
    return (quotient if a >> 31 == b >> 31 else -quotient) & WORD_MASK


def _remainder(a: int, b: int) -> int:
    if b == 0:
        return a
    magnitude = abs(signed(a)) % abs(signed(b))
    return (-magnitude if a >> 31 else magnitude) & WORD_MASK


RISCV_OPERATIONS = {
    "add": lambda a, b: a + b & WORD_MASK,
    "sub": lambda a, b: a - b & WORD_MASK,
    "sll": lambda a, b: a << (b & 31) & WORD_MASK,
    "slt": lambda a, b: int(signed(a) < signed(b)),
    "sltu": lambda a, b: int(a < b),
    "xor": lambda a, b: a ^ b,
    "srl": lambda a, b: a >> (b & 31),
    "sra": lambda a, b: signed(a) >> (b & 31) & WORD_MASK,
    "or": lambda a, b: a | b,
    "and": lambda a, b: a & b,
    "mul": lambda a, b: a * b & WORD_MASK,
    "mulh": lambda a, b: signed(a) * signed(b) >> 32 & WORD_MASK,
    "mulhsu": lambda a, b: signed(a) * b >> 32 & WORD_MASK,
    "mulhu": lambda a, b: a * b >> 32,
    "div": _divide,
    "divu": lambda a, b: a // b if b else WORD_MASK,
    "rem": _remainder,
    "remu": lambda a, b: a % b if b else a,
}
"""Operations on two registers."""

CONDITIONS = {
    "beq": lambda a, b: a == b,
    "bne": lambda a, b: a != b,
    "blt": lambda a, b: signed(a) < signed(b),
    "bge": lambda a, b: signed(a) >= signed(b),
    "bltu": lambda a, b: a < b,
    "bgeu": lambda a, b: a >= b,
}
"""Branch conditions."""
