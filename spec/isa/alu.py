"""ALU operations, with the names of the published instruction set."""

import enum

__all__ = ["BITWISE", "COMPARISONS", "FLOAT_ONLY", "REDUCTIONS", "SLOW", "AluOp", "Arithmetic"]


class Arithmetic(enum.IntEnum):
    """Arithmetic of an instruction on 32-bit words."""

    FP32 = 0
    INT32 = 1
    UINT32 = 2


class AluOp(enum.IntEnum):
    """Operation op(a, b) of an ALU.

    The arithmetic is FP32 unless every operand and the result of the instruction has an integer format. Then it is
    32-bit integer arithmetic, which wraps: UINT32 if an operand (for MEMSET and IOTA: dst) has that format, else INT32.
    A comparison or a logical operation returns 1 or 0 in that arithmetic.
    """

    BYPASS = 0
    """a, unchanged."""
    ADD = 1
    """a + b."""
    SUBTRACT = 2
    """a - b."""
    MULTIPLY = 3
    """a * b; of integers the lower 32 bits of the product."""
    MAX = 4
    """IEEE 754-2019 maximum: NaN if either is NaN, +0 above -0."""
    MIN = 5
    """IEEE 754-2019 minimum."""
    ABSOLUTE_MAX = 6
    """Maximum of |a| and |b|; in INT32 the magnitude of -2**31 wraps to -2**31 and is compared as -2**31."""
    DIVIDE = 7
    """a / b, one rounding."""
    POWER = 8
    """a ** b as IEEE 754-2019 pow, with a documented error."""
    IS_EQUAL = 9
    """a = b."""
    NOT_EQUAL = 10
    """a and b differ; NaN differs from everything."""
    IS_GT = 11
    """a > b."""
    IS_GE = 12
    """a >= b."""
    IS_LT = 13
    """a < b."""
    IS_LE = 14
    """a <= b."""
    LOGICAL_AND = 15
    """Logical and; every value except zero is true, including NaN."""
    LOGICAL_OR = 16
    """Logical or."""
    LOGICAL_XOR = 17
    """Logical exclusive or."""
    BITWISE_AND = 18
    """Bitwise and."""
    BITWISE_OR = 19
    """Bitwise or."""
    BITWISE_XOR = 20
    """Bitwise exclusive or."""
    LOGICAL_SHIFT_LEFT = 21
    """a << b, b unsigned; 0 for 32 or more bits."""
    LOGICAL_SHIFT_RIGHT = 22
    """a >> b, b unsigned, filled with zeros; 0 for 32 or more bits."""

    FLOOR = 23
    """Largest integer that is at most a; b is ignored. Zeros keep their sign, infinities are unchanged."""
    CEIL = 24
    """Smallest integer that is at least a, -0 between -1 and 0; b is ignored."""
    TRUNC = 25
    """a without its fraction, with the sign of a; b is ignored."""
    LARGER_MAGNITUDE = 26
    """a if |a| > |b|, else b, so b if either is NaN; the sign is kept. Integer magnitudes as for ABSOLUTE_MAX."""
    SMALLER_MAGNITUDE = 27
    """a if |a| < |b|, else b, so b if either is NaN; the sign is kept."""
    MOD = 28
    """a - b * floor(a / b), as numpy's mod, with the sign of b; exact except for one rounding where b is added to an a
    of the opposite sign.
    """
    FMOD = 29
    """a - b * trunc(a / b), as C's fmod, with the sign of a; exact."""


SLOW = frozenset({AluOp.DIVIDE, AluOp.POWER, AluOp.MOD, AluOp.FMOD})
"""Operations of the iterative units."""

FLOAT_ONLY = SLOW | {AluOp.FLOOR, AluOp.CEIL, AluOp.TRUNC}
"""Operations that integer arithmetic does not have."""

BITWISE = frozenset(
    {AluOp.BITWISE_AND, AluOp.BITWISE_OR, AluOp.BITWISE_XOR, AluOp.LOGICAL_SHIFT_LEFT, AluOp.LOGICAL_SHIFT_RIGHT}
)
"""Operations that only integer arithmetic has."""

COMPARISONS = (AluOp.IS_EQUAL, AluOp.NOT_EQUAL, AluOp.IS_GT, AluOp.IS_GE, AluOp.IS_LT, AluOp.IS_LE)

REDUCTIONS = frozenset(
    {
        AluOp.ADD, AluOp.MULTIPLY, AluOp.MAX, AluOp.MIN, AluOp.ABSOLUTE_MAX, AluOp.LOGICAL_AND, AluOp.LOGICAL_OR,
        AluOp.LOGICAL_XOR, AluOp.BITWISE_AND, AluOp.BITWISE_OR, AluOp.BITWISE_XOR, AluOp.LARGER_MAGNITUDE,
        AluOp.SMALLER_MAGNITUDE,
    }
)  # fmt: skip
"""Operations allowed in a reduction."""
