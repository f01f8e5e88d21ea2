"""The operations of the vector engine's ALUs, with the names of the published instruction set."""

import enum

__all__ = ["BITWISE", "COMPARISONS", "FLOAT_ONLY", "REDUCTIONS", "SLOW", "AluOp", "Arithmetic"]


class Arithmetic(enum.IntEnum):
    """What the 32 bits of a word are while an instruction computes with it."""

    FP32 = 0
    """A float."""
    INT32 = 1
    """Two's complement."""
    UINT32 = 2
    """Without a sign."""


class AluOp(enum.IntEnum):
    """op(a, b); the value is the code that instructions carry.

    Arithmetic is FP32, or that of integers of 32 bits, which wraps around, if every operand and the result of the
    instruction has an integer format: UINT32 if an operand has it (of MEMSET and IOTA: dst), else INT32. A
    comparison or a logical operation gives 1 or 0 of that arithmetic.
    """

    BYPASS = 0
    """a, unchanged."""
    ADD = 1
    """a + b."""
    SUBTRACT = 2
    """a - b."""
    MULTIPLY = 3
    """Of integers the lower 32 bits of the product."""
    MAX = 4
    """IEEE 754-2019 maximum: NaN if either is NaN, +0 above -0."""
    MIN = 5
    """IEEE 754-2019 minimum."""
    ABSOLUTE_MAX = 6
    """Maximum of |a| and |b|; in INT32 the magnitude of -2**31 wraps to -2**31, and compares as such."""
    DIVIDE = 7
    """a / b, one rounding."""
    POWER = 8
    """a ** b as IEEE 754-2019 pow, of documented error."""
    IS_EQUAL = 9
    """a = b."""
    NOT_EQUAL = 10
    """a and b differ; so does NaN from everything."""
    IS_GT = 11
    """a > b."""
    IS_GE = 12
    """a >= b."""
    IS_LT = 13
    """a < b."""
    IS_LE = 14
    """a <= b."""
    LOGICAL_AND = 15
    """Of truth values: everything but zero is true, NaN too."""
    LOGICAL_OR = 16
    """Of truth values."""
    LOGICAL_XOR = 17
    """Of truth values."""
    BITWISE_AND = 18
    """Bit for bit."""
    BITWISE_OR = 19
    """Bit for bit."""
    BITWISE_XOR = 20
    """Bit for bit."""
    LOGICAL_SHIFT_LEFT = 21
    """a shifted by b places, b read as unsigned; by 32 or more places gives 0."""
    LOGICAL_SHIFT_RIGHT = 22
    """The same, to lower places; zeros come in."""

    FLOOR = 23
    """The largest integer that is at most a; b is not looked at. Zeros keep their sign, infinities stay."""
    CEIL = 24
    """The smallest integer that is at least a, -0 between -1 and 0."""
    TRUNC = 25
    """a without what it has after the point, with the sign of a."""
    LARGER_MAGNITUDE = 26
    """a if |a| > |b|, else b, each with its sign; so b if either is NaN. Magnitudes of integers as of ABSOLUTE_MAX."""
    SMALLER_MAGNITUDE = 27
    """a if |a| < |b|, else b."""
    MOD = 28
    """a - b * floor(a / b), as numpy's mod: exact but for one rounding where b is added to an a of the other sign; has
    the sign of b."""
    FMOD = 29
    """a - b * trunc(a / b), exact, as C's fmod; has the sign of a."""


SLOW = frozenset({AluOp.DIVIDE, AluOp.POWER, AluOp.MOD, AluOp.FMOD})
"""Operations of the iterative units, which take several cycles an element."""

FLOAT_ONLY = SLOW | {AluOp.FLOOR, AluOp.CEIL, AluOp.TRUNC}
"""Operations that the arithmetic of integers does not have."""

BITWISE = frozenset(
    {AluOp.BITWISE_AND, AluOp.BITWISE_OR, AluOp.BITWISE_XOR, AluOp.LOGICAL_SHIFT_LEFT, AluOp.LOGICAL_SHIFT_RIGHT}
)
"""Operations that only the arithmetic of integers has."""

COMPARISONS = (AluOp.IS_EQUAL, AluOp.NOT_EQUAL, AluOp.IS_GT, AluOp.IS_GE, AluOp.IS_LT, AluOp.IS_LE)

REDUCTIONS = frozenset(
    {
        AluOp.ADD, AluOp.MULTIPLY, AluOp.MAX, AluOp.MIN, AluOp.ABSOLUTE_MAX, AluOp.LOGICAL_AND, AluOp.LOGICAL_OR,
        AluOp.LOGICAL_XOR, AluOp.BITWISE_AND, AluOp.BITWISE_OR, AluOp.BITWISE_XOR, AluOp.LARGER_MAGNITUDE,
        AluOp.SMALLER_MAGNITUDE,
    }
)  # fmt: skip
"""Operations that a reduction may use."""
