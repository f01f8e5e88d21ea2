"""Widths, control fields and constants of the activation datapath (docs/activation.md defines every step)."""

import enum

__all__ = [
    "BINADES_BITS", "COEFFICIENT_FIELDS", "COEFFICIENT_GUARD", "CONTROL_FIELDS", "COORDINATE_BITS", "EXP2_FIELDS",
    "EXP2_INDEX_BITS", "FACTOR_BITS", "HIGH_EXPONENT", "LN2", "LOCAL_BITS", "LOW_EXPONENT", "POINT", "QUADRANT_BITS",
    "REDUCED_BITS", "REDUCED_ZEROS", "ROW_BITS", "SUM_CUT", "SUM_POINT", "TWO_OVER_PI", "WINDOW_BITS", "Coordinate",
    "Factor", "Scale", "Source", "Special", "control_address", "special_address", "window",
]  # fmt: skip

LOW_EXPONENT, HIGH_EXPONENT = -4, 11
"""Exponents of z with a separate control row; smaller and larger ones share the outermost rows."""

ROW_BITS = 4
"""Width of a row's index among the control table's rows of one function and one sign of z."""

BINADES_BITS = 4
"""Number of leading bits of x that are the binade, in a last row with the coordinate OUTER."""

COORDINATE_BITS = 30
"""Fraction bits of the coordinate x in [0, 1) of a region."""

LOCAL_BITS = 24
"""Fraction bits of the coordinate t in [0, 1) of a segment; at most 6 bits of x select the segment."""

POINT = 33
"""Fraction bits of the polynomial: its value is P * 2**(exponent - 33), |P| < 2**34."""

COEFFICIENT_GUARD = 2
"""Number of fraction bits that c1, c2 and c3 have in addition to those of c0."""

COEFFICIENT_FIELDS = {"c0": 35, "c1": 34, "c2": 29, "c3": 22, "exponent": 8}
"""Fields of a segment with their widths, all signed, from the least significant bit up."""

FACTOR_BITS = 28
"""Width of the factor M, unsigned; its value is M * 2**(exponent - 23)."""

SUM_CUT = 3
"""Dropped low bits of the product P * M."""

SUM_POINT = 53
"""Fraction bits of the sum S, which has the value S * 2**(exponent - 53): 33 and 23 bits, less the 3 dropped ones."""

LN2 = 0x2C5C85FDF473DE
"""ln 2 in units of 2**-54, rounded to nearest."""

EXP2_INDEX_BITS = 7
"""Leading fraction bits of u that select the segment of 2**u."""

EXP2_FIELDS = {"c0": 34, "c1": 29, "c2": 20}
"""Fields of a segment of 2**f, f in [0, 1): c0 in units of 2**-33, c1 and c2 of 2**-35; all unsigned."""

WINDOW_BITS = 80
"""Width of the window of 2 / pi that an exponent of z selects."""

QUADRANT_BITS = 2

REDUCED_BITS = 62
"""Fraction bits of the position within a quadrant."""

REDUCED_ZEROS = 29
"""Maximum leading zeros of that position: 10741887 * 2**11 is the FP32 number closest to a multiple of pi / 2."""

TWO_OVER_PI = 0x28BE60DB9391054A7F09D5F47D4D377036D8A5664F10E4
"""2 / pi in units of 2**-182, truncated."""


class Coordinate(enum.IntEnum):
    """Source of the coordinate x, which selects segment and t."""

    MANTISSA = 0
    """Fraction of z's significand: one binade of z is one region."""
    OUTER = 1
    """First row: |z| / 2**(LOW_EXPONENT + 1), so everything from zero to there is one region. Last row: the binades
    from HIGH_EXPONENT on, side by side in one region; larger values map to its end.
    """
    SIN = 2
    """Position of |z| within its quadrant, mirrored in odd quadrants, for the sine; the factor is REDUCED."""
    COS = 3
    """Position as for SIN, one quadrant further."""


class Source(enum.IntEnum):
    """Source of P."""

    TABLE = 0
    """Polynomial."""
    Z = 1
    ALPHA = 2


class Factor(enum.IntEnum):
    """Source of the factor M."""

    ONE = 0
    Z = 1
    """|z|."""
    LOG = 2
    """m - 1 for a significand m of z below 1.5, else m / 2 - 1; the exponent times ln 2 is added to the product."""
    REDUCED = 3
    """Position within the quadrant."""


class Scale(enum.IntEnum):
    """Contribution of z's exponent e to the exponent of the result."""

    NONE = 0
    RECIPROCAL = 1
    """-e."""
    ROOT = 2
    """floor(e / 2)."""
    INVERSE_ROOT = 3
    """-floor(e / 2)."""


CONTROL_FIELDS = {
    "base": 12, "bits": 3, "coordinate": 2, "source": 2, "factor": 2, "scale": 2, "negate": 1, "exp2": 1, "invalid": 1,
}  # fmt: skip
"""Fields of a row of the control table with their widths, all unsigned, from the least significant bit up.

base: first segment. bits: number of leading bits of x that select the segment. negate: invert the result's sign. exp2:
the sum is the binary logarithm of the result. invalid: the result is NaN.
"""


class Special(enum.IntEnum):
    """Codes of the results at zeros and infinities; bit 4 of an entry is the sign."""

    ZERO = 0
    HALF = 1
    ONE = 2
    INFINITY = 3
    NAN = 4
    LN2 = 5
    """softplus(0)."""
    TWO_OVER_ROOT_PI = 6
    """derf(0)."""
    ALPHA = 7
    """alpha, with a NaN made canonical."""
    ALPHA_TIMES_Z = 8
    """alpha * z, an IEEE 754 product."""
    QUARTER = 9
    HALF_PI = 10
    """arctan(inf)."""

    @property
    def word(self) -> int | None:
        """FP32 storage word of the magnitude; None for the two results that depend on alpha."""
        return _WORDS.get(self)


_WORDS = {
    Special.ZERO: 0x00000000, Special.HALF: 0x3F000000, Special.ONE: 0x3F800000, Special.INFINITY: 0x7F800000,
    Special.NAN: 0x7FC00000, Special.LN2: 0x3F317218, Special.TWO_OVER_ROOT_PI: 0x3F906EBB,
    Special.QUARTER: 0x3E800000, Special.HALF_PI: 0x3FC90FDB,
}  # fmt: skip


def control_address(function: int, negative: int, row: int) -> int:
    """Return the control table's address of a row of a function and sign of z."""
    return (function << 1 | negative) << ROW_BITS | row


def special_address(function: int, infinite: int, negative: int) -> int:
    """Return the address of a function's result at a zero or infinity in the table of specials."""
    return (function << 1 | infinite) << 1 | negative


def window(exponent: int) -> int:
    """Return floor(2 / pi * 2**(exponent + 55)) mod 2**80, for an exponent of z from 0 to 127."""
    return TWO_OVER_PI >> 127 - exponent & (1 << WINDOW_BITS) - 1
