"""Reference activation functions: mpmath, and float64 with relative errors of 2**-45, negligible for FP32."""

from functools import cache
from types import SimpleNamespace

import mpmath
import numpy as np
from mpmath import mp, mpf

__all__ = ["ALPHA", "DIGITS", "POSITIVE", "exact", "reference"]

POSITIVE = frozenset({"ln", "sqrt", "rsqrt"})
"""Functions that are defined for positive arguments only."""

ALPHA = 0.1
"""Slope of the leaky functions in tests, rounded to FP32."""

DIGITS = 60
_SLOPE = np.float64(np.float32(ALPHA))


@cache
def _float64() -> SimpleNamespace:
    """Return the elementary functions of numpy and scipy."""
    from scipy import special

    return SimpleNamespace(
        abs=np.abs, arctan=np.arctan, cdf=special.ndtr, cos=np.cos, cosh=np.cosh, erf=special.erf, exp=np.exp,
        log=np.log, log1p=np.log1p, logistic=special.expit, max=np.maximum, number=np.float64, pi=np.pi, sign=np.sign,
        sin=np.sin, sqrt=np.sqrt, tanh=np.tanh, where=np.where,
    )  # fmt: skip


_MPMATH = SimpleNamespace(
    abs=abs, arctan=mp.atan, cdf=mp.ncdf, cos=mp.cos, cosh=mp.cosh, erf=mp.erf, exp=mp.exp, log=mp.log, log1p=mp.log1p,
    logistic=lambda z: 1 / (1 + mp.exp(-z)), max=max, number=mpf, pi=mp.pi, sign=mp.sign, sin=mp.sin, sqrt=mp.sqrt,
    tanh=mp.tanh, where=lambda chosen, one, other: one if chosen else other,
)  # fmt: skip
"""Elementary functions of mpmath."""


def _argument(m, z):
    return m.sqrt(8 / m.pi) * (z + m.number("0.044715") * z**3)


def _dgelu_tanh(m, z, slope):
    v, gain = _argument(m, z), m.sqrt(8 / m.pi) * (1 + 3 * m.number("0.044715") * z * z)
    # The logistic factors are 0 long before z * z * z, which `gain` contains, overflows.
    return m.logistic(v) + m.where(m.abs(z) < 1e3, z * m.logistic(v) * m.logistic(-v) * gain, 0)


_FUNCTIONS = {
    "identity": lambda m, z, slope: z,
    "square": lambda m, z, slope: z * z,
    "abs": lambda m, z, slope: m.abs(z),
    "sign": lambda m, z, slope: m.sign(z),
    "relu": lambda m, z, slope: m.max(z, 0),
    "leaky_relu": lambda m, z, slope: m.where(z > 0, z, slope * z),
    "exp": lambda m, z, slope: m.exp(z),
    "ln": lambda m, z, slope: m.log(z),
    "sqrt": lambda m, z, slope: m.sqrt(z),
    "rsqrt": lambda m, z, slope: 1 / m.sqrt(z),
    "reciprocal": lambda m, z, slope: 1 / z,
    "tanh": lambda m, z, slope: m.tanh(z),
    "sigmoid": lambda m, z, slope: m.logistic(z),
    "erf": lambda m, z, slope: m.erf(z),
    "gelu": lambda m, z, slope: z * m.cdf(z),
    "gelu_tanh": lambda m, z, slope: z * m.logistic(_argument(m, z)),
    "silu": lambda m, z, slope: z * m.logistic(z),
    "softplus": lambda m, z, slope: m.max(z, 0) + m.log1p(m.exp(-m.abs(z))),
    "sin": lambda m, z, slope: m.sin(z),
    "cos": lambda m, z, slope: m.cos(z),
    "dtanh": lambda m, z, slope: 1 / m.cosh(z) ** 2,
    "dsigmoid": lambda m, z, slope: m.logistic(z) * m.logistic(-z),
    "derf": lambda m, z, slope: 2 / m.sqrt(m.pi) * m.exp(-z * z),
    "dgelu": lambda m, z, slope: m.cdf(z) + z * m.exp(-z * z / 2) / m.sqrt(2 * m.pi),
    "dgelu_tanh": _dgelu_tanh,
    "dsilu": lambda m, z, slope: m.logistic(z) * (1 + z * m.logistic(-z)),
    "dsoftplus": lambda m, z, slope: m.logistic(z),
    "drelu": lambda m, z, slope: m.where(z > 0, 1.0, 0.0),
    "dleaky_relu": lambda m, z, slope: m.where(z > 0, 1.0, slope),
    "gelu_sigmoid": lambda m, z, slope: z * m.logistic(m.number("1.702") * z),
    "dgelu_sigmoid": lambda m, z, slope: _FUNCTIONS["dsilu"](m, m.number("1.702") * z, slope),
    "mish": lambda m, z, slope: z * m.tanh(_FUNCTIONS["softplus"](m, z, slope)),
    "arctan": lambda m, z, slope: m.arctan(z),
}


def reference(name: str, z) -> np.ndarray:
    """Return f(z) in float64, for FP32 z other than NaN."""
    with np.errstate(all="ignore"):
        return _FUNCTIONS[name](_float64(), np.asarray(z, np.float64), _SLOPE)


def exact(name: str, z: float) -> mpmath.mpf:
    """Return f(z) to `DIGITS` digits."""
    with mp.workdps(DIGITS):
        return mpf(_FUNCTIONS[name](_MPMATH, mpf(float(z)), mpf(float(_SLOPE))))
