"""What RV32IM computes from two words: one equation an operation, on unsigned 32-bit integers."""

__all__ = ["BRANCHES", "IMMEDIATE", "MULTIPLY_DIVIDE", "REGISTER", "WORD", "signed"]

WORD = 0xFFFF_FFFF


def signed(a: int) -> int:
    """Return a word as the two's complement number that it is."""
    return (a ^ 0x8000_0000) - 0x8000_0000


def _divide(a: int, b: int) -> int:
    if b == 0:
        return WORD
    quotient = abs(signed(a)) // abs(signed(b))  # towards zero; the overflow of -2**31 / -1 wraps
    return (quotient if a >> 31 == b >> 31 else -quotient) & WORD


def _remainder(a: int, b: int) -> int:
    if b == 0:
        return a
    magnitude = abs(signed(a)) % abs(signed(b))
    return (-magnitude if a >> 31 else magnitude) & WORD


REGISTER = {
    (0, 0x00): lambda a, b: a + b & WORD,
    (0, 0x20): lambda a, b: a - b & WORD,
    (1, 0x00): lambda a, b: a << (b & 31) & WORD,
    (2, 0x00): lambda a, b: int(signed(a) < signed(b)),
    (3, 0x00): lambda a, b: int(a < b),
    (4, 0x00): lambda a, b: a ^ b,
    (5, 0x00): lambda a, b: a >> (b & 31),
    (5, 0x20): lambda a, b: signed(a) >> (b & 31) & WORD,
    (6, 0x00): lambda a, b: a | b,
    (7, 0x00): lambda a, b: a & b,
}
"""ADD, SUB, SLL, SLT, SLTU, XOR, SRL, SRA, OR, AND by funct3 and funct7."""

MULTIPLY_DIVIDE = {
    (0, 0x01): lambda a, b: a * b & WORD,
    (1, 0x01): lambda a, b: signed(a) * signed(b) >> 32 & WORD,
    (2, 0x01): lambda a, b: signed(a) * b >> 32 & WORD,
    (3, 0x01): lambda a, b: a * b >> 32,
    (4, 0x01): _divide,
    (5, 0x01): lambda a, b: a // b if b else WORD,
    (6, 0x01): _remainder,
    (7, 0x01): lambda a, b: a % b if b else a,
}
"""MUL, MULH, MULHSU, MULHU, DIV, DIVU, REM, REMU likewise."""

IMMEDIATE = {funct3: REGISTER[funct3, 0x00] for funct3 in (0, 2, 3, 4, 6, 7)}
"""Operations of two words that have a form with an immediate of 12 bits, by funct3; shifts have one of 5 bits."""

BRANCHES = {
    0: lambda a, b: a == b,
    1: lambda a, b: a != b,
    4: lambda a, b: signed(a) < signed(b),
    5: lambda a, b: signed(a) >= signed(b),
    6: lambda a, b: a < b,
    7: lambda a, b: a >= b,
}
"""BEQ, BNE, BLT, BGE, BLTU, BGEU by funct3."""
