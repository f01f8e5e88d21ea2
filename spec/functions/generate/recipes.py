"""Recipes: the polynomial of every function in every range of exponents of z."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

from neuroncore_rtl.spec.functions.generate.fit import mp, mpf
from neuroncore_rtl.spec.functions.generate.targets import (
    arctan_over_z,
    erf_over_z,
    erf_slope,
    gelu_slope,
    log1p_over_fraction,
    logistic,
    mirrored,
    mish_over_z,
    normal_cdf,
    one,
    sigmoid_form_cdf,
    sigmoid_form_slope,
    sigmoid_slope,
    silu_slope,
    sine_over_quadrant,
    sine_over_z,
    softplus,
    softplus_over_z,
    tanh_form_cdf,
    tanh_form_slope,
    tanh_over_z,
    tanh_slope,
    times,
    zero,
)
from neuroncore_rtl.spec.functions.layout import HIGH_EXPONENT, Coordinate, Factor, Scale, Source

__all__ = ["FINE", "RECIPES", "Piece"]

DIRECT = mpf(2) ** -26
"""Tolerance of a polynomial for y or y / z, relative to its value, or to `FLOOR` if the value is smaller."""

FINE = mpf(2) ** -30
"""Tolerance like `DIRECT`, for functions with an error of less than one ulp."""

POWER = mpf(2) ** -24.5
"""Tolerance of the binary logarithm u of a result: absolute, or relative to u / 32 where the result is below 2**-32."""

NEAR_ONE = mpf(2) ** -27
"""Tolerance like `POWER`, for results that approach 1."""

FLOOR = mpf(2) ** -5

LAST = HIGH_EXPONENT
"""Exponent of the control table's last row, which serves all larger exponents."""


def relative(argument: mpf, exact: mpf) -> mpf:
    """Return the factor that makes an error relative to |y|, at least `FLOOR`."""
    return 1 / max(abs(exact), FLOOR)


def logarithmic(argument: mpf, exact: mpf) -> mpf:
    """Return the factor of an error of log2|y|: 1, but 32 / |log2|y|| where |y| is below 2**-32."""
    return 1 / max(1, abs(exact) / 32)


def logarithmic_slope(argument: mpf, exact: mpf) -> mpf:
    """Return the factor of an error of log2|y| / |z|."""
    return argument * logarithmic(argument, argument * exact)


@dataclass(frozen=True)
class Piece:
    """Method for a range of exponents of z: a polynomial, and the use of its value.

    Arguments:
        target: function of |z|, the coordinate x, or the position in a quadrant, that the polynomial approximates.
        tolerance: largest weighted error.
        weight: function of the argument and the exact value; returns the factor of an error at that argument.
        by_exponent: True if the argument is |z|, so that each exponent has its polynomial; False if all share one.
        exponent: exponent of all segments; None to select the best for each.
        fields: nonzero fields of the control rows.
    """

    target: Callable
    tolerance: mpf = DIRECT
    weight: Callable = relative
    by_exponent: bool = True
    exponent: int | None = None
    fields: tuple[tuple[str, int], ...] = ()


def direct(target, **fields) -> Piece:
    """Return a piece with a polynomial for y."""
    return Piece(target, fields=_fields(fields))


def times_z(target, **fields) -> Piece:
    """Return a piece with a polynomial for y / |z|."""
    return Piece(target, fields=_fields({"factor": Factor.Z, **fields}))


def power(target, **fields) -> tuple[Piece, Piece]:
    """Return two alternative pieces for y = 2**u: polynomials for u = log2|y| and for u / |z|."""
    return (
        Piece(_log2_of(target), POWER, logarithmic, fields=_fields({"exp2": 1, **fields})),
        Piece(_log2_slope(target), POWER, logarithmic_slope, fields=_fields({"exp2": 1, "factor": Factor.Z, **fields})),
    )


def near_one(target) -> Piece:
    """Return a piece for the binary logarithm of a result that approaches 1, which has a finer ulp."""
    return Piece(_log2_of(target), NEAR_ONE, logarithmic, fields=_fields({"exp2": 1}))


def of_significand(target, **fields) -> Piece:
    """Return a piece with a function of z's significand 1 + x."""
    return Piece(target, FINE, by_exponent=False, fields=_fields(fields))


def outer(target) -> Piece:
    """Return a piece for the last control row, a region of many binades."""
    return Piece(target, fields=_fields({"coordinate": Coordinate.OUTER}))


def reduced(coordinate: Coordinate) -> Piece:
    """Return a piece for sin(pi / 2 * r), r the position in a quadrant."""
    fields = _fields({"coordinate": coordinate, "factor": Factor.REDUCED})
    return Piece(sine_over_quadrant, by_exponent=False, fields=fields)


def _fields(fields) -> tuple[tuple[str, int], ...]:
    return tuple(sorted((name, int(value)) for name, value in fields.items()))


@cache
def _log2_of(target):
    return lambda z: mp.log(abs(target(z)), 2)


@cache
def _log2_slope(target):
    return lambda z: mp.log(abs(target(z)), 2) / z


OVERFLOW = times_z(lambda z: mpf(2) ** 127)
ONE, ZERO, Z = direct(one), direct(zero), times_z(one)
NAN = Piece(zero, fields=_fields({"invalid": 1}))


def negative(piece):
    """Return a piece, or alternative pieces, with the opposite sign."""
    if isinstance(piece, tuple):
        return tuple(map(negative, piece))
    fields = dict(piece.fields)
    return replace(piece, fields=_fields({**fields, "negate": 1 - fields.get("negate", 0)}))


def odd(*pieces):
    """Return an odd function's pieces for positive and negative z, from pairs (largest exponent, piece) for z > 0."""
    return pieces, tuple((last, negative(piece)) for last, piece in pieces)


def even(*pieces):
    """Return an even function's pieces for positive and negative z: the same pairs (largest exponent of z, piece)."""
    return pieces, pieces


def gate(cdf, above=2, near=0, tail_to=3):
    """Return the pieces of z times a cumulative distribution; each serves z up to its largest exponent."""
    below = mirrored(cdf)
    tail = negative(power(times(below)))
    return (
        ((above, times_z(cdf)), (LAST, Z)),
        ((near, negative(times_z(below))), (tail_to, tail), (LAST, negative(ZERO))),
    )


def gate_slope(slope, above=1, settled=2, near=0, tail_to=3):
    """Return the pieces of a gate's derivative; each serves z up to its largest exponent."""
    below = mirrored(slope)
    return (
        ((above, direct(slope)), (settled, near_one(slope)), (LAST, ONE)),
        ((near, direct(below)), (tail_to, negative(power(below))), (LAST, negative(ZERO))),
    )


def root(scale, even_target, odd_target):
    """Return the pieces of a root, for even and odd exponents of z."""
    return ((0, of_significand(even_target, scale=scale)), (1, of_significand(odd_target, scale=scale)))


LOG2_E = 1 / mp.log(2)
EXP = Piece(lambda z: LOG2_E, POWER, fields=_fields({"exp2": 1, "factor": Factor.Z}))
EXP_NEGATIVE = Piece(lambda z: -LOG2_E, POWER, fields=EXP.fields)
LN = Piece(log1p_over_fraction, FINE, by_exponent=False, exponent=0, fields=_fields({"factor": Factor.LOG}))
ALPHA = Source.ALPHA
below_logistic = mirrored(logistic)
LOGISTIC = (
    ((2, direct(logistic)), (4, near_one(logistic)), (LAST, ONE)),
    ((1, direct(below_logistic)), (6, power(below_logistic)), (LAST, ZERO)),
)

RECIPES = {
    "identity": odd((LAST, Z)),
    "square": even((LAST, times_z(one, source=Source.Z))),
    "abs": even((LAST, Z)),
    "sign": odd((LAST, ONE)),
    "relu": (((LAST, Z),), ((LAST, ZERO),)),
    "leaky_relu": (((LAST, Z),), ((LAST, times_z(one, source=ALPHA, negate=1)),)),
    "exp": (((6, EXP), (LAST, OVERFLOW)), ((6, EXP_NEGATIVE), (LAST, ZERO))),
    "ln": (((LAST, LN),), ((LAST, NAN),)),
    "sqrt": (
        root(Scale.ROOT, lambda x: mp.sqrt(1 + x), lambda x: mp.sqrt(2 + 2 * x)),
        ((1, NAN),),
    ),
    "rsqrt": (
        root(Scale.INVERSE_ROOT, lambda x: 1 / mp.sqrt(1 + x), lambda x: 1 / mp.sqrt(2 + 2 * x)),
        ((1, NAN),),
    ),
    "reciprocal": odd((LAST, of_significand(lambda x: 1 / (1 + x), scale=Scale.RECIPROCAL))),
    "tanh": odd((-1, times_z(tanh_over_z)), (1, direct(mp.tanh)), (3, near_one(mp.tanh)), (LAST, ONE)),
    "sigmoid": LOGISTIC,
    "erf": odd((-1, times_z(erf_over_z)), (0, direct(mp.erf)), (1, near_one(mp.erf)), (LAST, ONE)),
    "gelu": gate(normal_cdf),
    "gelu_tanh": gate(tanh_form_cdf),
    "silu": gate(logistic, above=4, near=1, tail_to=6),
    "softplus": (
        ((0, direct(softplus)), (3, times_z(softplus_over_z)), (LAST, Z)),
        ((0, direct(mirrored(softplus))), (6, power(mirrored(softplus))), (LAST, ZERO)),
    ),
    "sin": odd((-1, times_z(sine_over_z)), (LAST, reduced(Coordinate.SIN))),
    "cos": even((-1, direct(mp.cos)), (LAST, reduced(Coordinate.COS))),
    "dtanh": even((0, direct(tanh_slope)), (5, power(tanh_slope)), (LAST, ZERO)),
    "dsigmoid": even((1, direct(sigmoid_slope)), (6, power(sigmoid_slope)), (LAST, ZERO)),
    "derf": even((-1, direct(erf_slope)), (3, power(erf_slope)), (LAST, ZERO)),
    "dgelu": gate_slope(gelu_slope),
    "dgelu_tanh": gate_slope(tanh_form_slope),
    "dsilu": gate_slope(silu_slope, above=2, settled=4, near=1, tail_to=6),
    "dsoftplus": LOGISTIC,
    "drelu": (((LAST, ONE),), ((LAST, ZERO),)),
    "dleaky_relu": (((LAST, ONE),), ((LAST, direct(one, source=ALPHA)),)),
    "gelu_sigmoid": gate(sigmoid_form_cdf, above=3, tail_to=5),
    "dgelu_sigmoid": gate_slope(sigmoid_form_slope, settled=3, tail_to=5),
    "mish": gate(mish_over_z, above=3, near=1, tail_to=6),
    "arctan": odd((-1, times_z(arctan_over_z)), (LAST - 1, direct(mp.atan)), (LAST, outer(mp.atan))),
}  # fmt: skip
"""Pieces of every function for positive and negative z, each with the largest exponent of z, or parity, of its use."""
