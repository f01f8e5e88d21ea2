"""Polynomial fit with integer coefficients, as evaluated by the hardware.

A projection on Chebyshev polynomials from 8 nodes is within a few percent of the minimax polynomial.
"""

from collections.abc import Callable
from typing import Any, cast

from mpmath.ctx_mp import MPContext

from neuroncore_rtl.spec.functions.layout import (
    COEFFICIENT_FIELDS,
    COEFFICIENT_GUARD,
    EXP2_INDEX_BITS,
    LOCAL_BITS,
    POINT,
)

__all__ = ["exp2_segments", "fit", "mp", "mpf"]

mp: Any = cast("Any", MPContext())  # MPContext gets most of its functions at run time.
mp.prec = 160
mpf = mp.mpf

NODES = 8

DEGREE = 3

MAX_BITS = 6
"""Maximum leading bits of x that select a segment."""

LAST = (1 << LOCAL_BITS) - 1

LARGEST = (1 << POINT + 1) - (1 << LOCAL_BITS)
"""Bound of |P| at the points where a segment is checked; |P| < 2**34 between them too."""

Segment = tuple[int, ...]


def _nodes() -> list:
    return [(1 + mp.cos(mp.pi * (2 * j + 1) / (2 * NODES))) / 2 for j in range(NODES)]


_T = _nodes()
_BASIS = [[mp.cos(k * mp.acos(2 * t - 1)) for t in _T] for k in range(DEGREE + 1)]

_LEADING = (1, 2, 8, 32)
"""Leading coefficients of the Chebyshev polynomials of 2 t - 1."""

_CHECKS = [int(mp.nint((1 - mp.cos(mp.pi * j / 8)) / 2 * LAST)) for j in range(9)]
"""Values of t at which a segment is checked."""


def _leading(values: list, degree: int):
    weight = 2 if degree else 1
    return weight * _LEADING[degree] * mp.fsum(map(mp.fmul, values, _BASIS[degree])) / NODES


def _quantise(values: list, exponent: int, degree: int) -> list[int]:
    """Return c0, c1, ... of a polynomial near `values` at the nodes."""
    coefficients = [0] * (degree + 1)
    for k in range(degree, -1, -1):
        unit = mpf(2) ** (exponent - POINT - (COEFFICIENT_GUARD if k else 0))
        # The hardware truncates products, by half a unit on average; c0 compensates.
        cut = 0.5 if k == 0 and any(coefficients) else 0
        coefficients[k] = int(mp.nint(_leading(values, k) / unit + cut))
        values = [v - coefficients[k] * unit * t**k for v, t in zip(values, _T, strict=True)]
    return coefficients


def _horner(segment: Segment, t: int) -> int:
    """Return P at t, with the truncations of the hardware."""
    c0, c1, c2, c3, _ = segment
    q2 = c2 + (t * c3 >> LOCAL_BITS)
    q1 = c1 + (t * q2 >> LOCAL_BITS)
    return c0 + (t * q1 >> LOCAL_BITS + COEFFICIENT_GUARD)


def _fits(segment: Segment) -> bool:
    return all(
        -1 << width - 1 <= value < 1 << width - 1
        for value, width in zip(segment, COEFFICIENT_FIELDS.values(), strict=True)
    )


def _segment(values: list, exponent: int | None) -> Segment:
    if exponent is None:
        largest = max(map(abs, values))
        exponent = int(mp.floor(mp.log(largest, 2))) if largest else 0
    while True:
        segment = (*_quantise(values, exponent, DEGREE), exponent)
        if _fits(segment) and all(abs(_horner(segment, t)) < LARGEST for t in _CHECKS):
            return segment
        exponent += 1


def fit(target: Callable, place: Callable, weight: Callable, tolerance, exponent: int | None) -> tuple:
    """Return the smallest power-of-two number of segments that meets a tolerance, and their largest error.

    `place` maps the coordinate x in [0, 1) to the argument of the target; for other arguments see `recipes.Piece`.

    Raises:
        ValueError: if 64 segments do not meet the tolerance.
    """
    worst = mpf(0)
    for bits in range(MAX_BITS + 1):
        segments, worst = [], mpf(0)
        for i in range(1 << bits):
            segment = _segment([target(place((i + t) / (1 << bits))) for t in _T], exponent)
            unit = mpf(2) ** (segment[-1] - POINT)
            for t in _CHECKS:
                argument = place((i + mpf(t) / (1 << LOCAL_BITS)) / (1 << bits))
                exact = target(argument)
                worst = max(worst, abs(_horner(segment, t) * unit - exact) * weight(argument, exact))
            segments.append(segment)
            if worst > tolerance:
                break
        else:
            return tuple(segments), worst
    raise ValueError(
        f"64 segments must have an error of at most 2**{float(mp.log(tolerance, 2)):.1f}, not {mp.nstr(worst, 3)}"
    )


def exp2_segments() -> list[Segment]:
    """Return the segments for 2**f with f in [0, 1)."""
    count = 1 << EXP2_INDEX_BITS
    return [tuple(_quantise([mpf(2) ** ((j + t) / count) for t in _T], 0, 2)) for j in range(count)]
