"""Constants of the FP32 power a ** b = 2 ** (b * log2(a)), each with its formula.

A constant for a real number x in units of 2**-n is the integer nearest to x * 2**n.

Logarithm: the six leading fraction bits of a's significand m, in [1, 2), select a row. The row holds RECIPROCAL, close
to 1 / m, and LOGARITHM = -log2(RECIPROCAL). Then log2(m) = LOGARITHM + log2(1 + r) with r = m * RECIPROCAL - 1, |r| <
2**-6, and log2(1 + r) = r * polynomial(r) of degree 4. RECIPROCAL is 1 in the first row and 1/2 in the last, so for a
close to 1, on both sides, the logarithm is log2(1 + r) only.

Power of two: the six leading bits of the fraction f, in [0, 1), select a row with EXPONENTIAL = 2 ** (row / 64). For
the remainder g, in [0, 2**-6), 2 ** g - 1 = g * polynomial(g) of degree 2.
"""

from collections.abc import Callable
from decimal import Decimal, localcontext

__all__ = [
    "ARGUMENT_BITS", "COEFFICIENT_BITS", "EXPONENTIAL", "EXP_COEFFICIENTS", "LEADING", "LOGARITHM", "LOGARITHM_BITS",
    "LOG_COEFFICIENTS", "NEAR_SHIFT", "POWER_ROW_BITS", "RECIPROCAL", "RECIPROCAL_BITS",
]  # fmt: skip

POWER_ROW_BITS = 6

RECIPROCAL_BITS = 9
"""Fraction bits of RECIPROCAL; m * RECIPROCAL is then exact in 32 fraction bits."""

ARGUMENT_BITS = 32
"""Fraction bits of the arguments r and g of the polynomials, and of a power of two."""

COEFFICIENT_BITS = 32
"""Fraction bits of the polynomials' coefficients and of their sums, except the logarithm's first coefficient."""

LEADING = (3, 1, 36)
"""First coefficient of the logarithm: 3 / 2**1 plus a remainder in units of 2**-36, for precision in few bits."""

LOGARITHM_BITS = 47
"""Fraction bits of LOGARITHM, and of log2(a)."""

NEAR_SHIFT = 13
"""Extra fraction bits of log2(a) where it is log2(1 + r) only, and small."""

_ROWS = 1 << POWER_ROW_BITS
_DIGITS = 40


def _nearest(value: Decimal, fraction_bits: int) -> int:
    return int((value * (1 << fraction_bits)).to_integral_value())


def _log2(value: Decimal) -> Decimal:
    return value.ln() / Decimal(2).ln()


def _interpolate(function: Callable[[Decimal], Decimal], low: Decimal, high: Decimal, count: int) -> list[Decimal]:
    """Return the coefficients, lowest first, of the polynomial that equals `function` at the Chebyshev nodes."""
    nodes = [(low + high) / 2 + Decimal(cosine) * (high - low) / 2 for cosine in _CHEBYSHEV_ROOTS[count]]
    differences = [function(node) for node in nodes]
    for order in range(1, count):
        for i in range(count - 1, order - 1, -1):
            differences[i] = (differences[i] - differences[i - 1]) / (nodes[i] - nodes[i - order])
    # From Newton's form to powers of the argument, by Horner's rule.
    coefficients = [Decimal(0)] * count
    for node, difference in zip(reversed(nodes), reversed(differences), strict=True):
        shifted = [Decimal(0), *coefficients[:-1]]
        coefficients = [up - node * same for up, same in zip(shifted, coefficients, strict=True)]
        coefficients[0] += difference
    return coefficients


_CHEBYSHEV_ROOTS = {
    3: ("0.866025403784439", "0", "-0.866025403784439"),
    5: ("0.951056516295154", "0.587785252292473", "0", "-0.587785252292473", "-0.951056516295154"),
}
"""Roots by degree, to 15 digits, because nodes need no higher precision."""


def _reciprocals() -> tuple[int, ...]:
    one = 1 << RECIPROCAL_BITS
    middle = [round(one * 2 * _ROWS / (2 * _ROWS + 2 * row + 1)) for row in range(1, _ROWS - 1)]
    return (one, *middle, one // 2)


def _log_coefficients() -> tuple[int, ...]:
    ends = [
        (1 + Decimal(row + end) / _ROWS) * reciprocal / (1 << RECIPROCAL_BITS) - 1
        for row, reciprocal in enumerate(RECIPROCAL)
        for end in (0, 1)
    ]
    first, *others = _interpolate(lambda r: _log2(1 + r) / r, min(ends), max(ends), 5)
    numerator, shift, bits = LEADING
    rest = _nearest(first - Decimal(numerator) / (1 << shift), bits)
    return rest, *(_nearest(other, COEFFICIENT_BITS) for other in others)


def _exp_coefficients() -> tuple[int, ...]:
    coefficients = _interpolate(
        lambda g: ((g * Decimal(2).ln()).exp() - 1) / g, Decimal("1e-30"), Decimal(1) / _ROWS, 3
    )
    return tuple(_nearest(coefficient, COEFFICIENT_BITS) for coefficient in coefficients)


with localcontext(prec=_DIGITS):
    RECIPROCAL = _reciprocals()
    """For each row, the integer nearest to the reciprocal of the row's middle, in units of 2**-RECIPROCAL_BITS."""

    LOGARITHM = tuple(_nearest(-_log2(Decimal(word) / (1 << RECIPROCAL_BITS)), LOGARITHM_BITS) for word in RECIPROCAL)
    """For each row, -log2(RECIPROCAL) in units of 2**-LOGARITHM_BITS."""

    LOG_COEFFICIENTS = _log_coefficients()
    """Coefficients of log2(1 + r) / r, lowest first; the first is the remainder of `LEADING`, in its units."""

    EXPONENTIAL = tuple(_nearest((Decimal(row) / _ROWS * Decimal(2).ln()).exp(), ARGUMENT_BITS) for row in range(_ROWS))
    """For each row, 2 ** (row / rows) in units of 2**-ARGUMENT_BITS."""

    EXP_COEFFICIENTS = _exp_coefficients()
    """Coefficients of (2 ** g - 1) / g, lowest first, in units of 2**-COEFFICIENT_BITS."""
