"""The operations of the vector engine's ALUs, with the names of the published instruction set."""

import enum

__all__ = ["BITWISE", "COMPARISONS", "FLOAT_ONLY", "REDUCTIONS", "SLOW", "AluOp"]


class AluOp(enum.IntEnum):
    """op(a, b); the value is the code that instructions carry.

    Arithmetic is FP32, or INT32 that wraps around if every operand and the result of the instruction has an integer
    format. A comparison or a logical operation gives 1 or 0 of that arithmetic.
    """

    BYPASS = 0
    """a, unchanged."""
    ADD = 1
    """a + b."""
    SUBTRACT = 2
    """a - b."""
    MULTIPLY = 3
    """In INT32 the lower 32 bits of the product."""
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


SLOW = frozenset({AluOp.DIVIDE, AluOp.POWER})
"""Operations of the iterative units, which take several cycles an element."""

FLOAT_ONLY = SLOW
"""Operations that INT32 arithmetic does not have."""

BITWISE = frozenset(
    {AluOp.BITWISE_AND, AluOp.BITWISE_OR, AluOp.BITWISE_XOR, AluOp.LOGICAL_SHIFT_LEFT, AluOp.LOGICAL_SHIFT_RIGHT}
)
"""Operations that only INT32 arithmetic has."""

COMPARISONS = (AluOp.IS_EQUAL, AluOp.NOT_EQUAL, AluOp.IS_GT, AluOp.IS_GE, AluOp.IS_LT, AluOp.IS_LE)

REDUCTIONS = frozenset(
    {
        AluOp.ADD, AluOp.MULTIPLY, AluOp.MAX, AluOp.MIN, AluOp.ABSOLUTE_MAX, AluOp.LOGICAL_AND, AluOp.LOGICAL_OR,
        AluOp.LOGICAL_XOR, AluOp.BITWISE_AND, AluOp.BITWISE_OR, AluOp.BITWISE_XOR,
    }
)  # fmt: skip
"""Operations that a reduction may use."""
