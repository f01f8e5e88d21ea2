"""The activation functions by others: float64 (numpy and scipy) for many points, mpmath for exact ones.

The float64 forms are good to about 2**-45, relative, which is nothing against an FP32 last place; a test compares them
with mpmath.
"""

import mpmath
import numpy as np
from mpmath import mp, mpf
from scipy import special

__all__ = ["ALPHA", "DIGITS", "exact", "reference"]

ALPHA = 0.1
"""Slope of the leaky functions in tests, rounded to FP32."""

DIGITS = 60

_SLOPE = np.float64(np.float32(ALPHA))
_ROOT_TWO_PI = np.sqrt(2 * np.pi)


def _softplus(z):
    return np.maximum(z, 0) + np.log1p(np.exp(-np.abs(z)))


def _argument(z):
    return np.sqrt(8 / np.pi) * (z + 0.044715 * z**3)


def _argument_slope(z):
    return np.sqrt(8 / np.pi) * (1 + 3 * 0.044715 * z * z)


def _dgelu_tanh(z):
    cdf, rest = special.expit(_argument(z)), special.expit(-_argument(z))
    # Either factor of the product vanishes long before z * z * z overflows the other.
    return cdf + np.where(np.abs(z) < 1e3, z * cdf * rest * _argument_slope(z), 0)


_FLOAT64 = {
    "identity": lambda z: z,
    "square": lambda z: z * z,
    "abs": np.abs,
    "sign": np.sign,
    "relu": lambda z: np.maximum(z, 0),
    "leaky_relu": lambda z: np.where(z > 0, z, _SLOPE * z),
    "exp": np.exp,
    "ln": np.log,
    "sqrt": np.sqrt,
    "rsqrt": lambda z: 1 / np.sqrt(z),
    "reciprocal": lambda z: 1 / z,
    "tanh": np.tanh,
    "sigmoid": special.expit,
    "erf": special.erf,
    "gelu": lambda z: z * special.ndtr(z),
    "gelu_tanh": lambda z: z * special.expit(_argument(z)),
    "silu": lambda z: z * special.expit(z),
    "softplus": _softplus,
    "sin": np.sin,
    "cos": np.cos,
    "dtanh": lambda z: 1 / np.cosh(z) ** 2,
    "dsigmoid": lambda z: special.expit(z) * special.expit(-z),
    "derf": lambda z: 2 / np.sqrt(np.pi) * np.exp(-z * z),
    "dgelu": lambda z: special.ndtr(z) + z * np.exp(-z * z / 2) / _ROOT_TWO_PI,
    "dgelu_tanh": _dgelu_tanh,
    "dsilu": lambda z: special.expit(z) * (1 + z * special.expit(-z)),
    "dsoftplus": special.expit,
    "drelu": lambda z: np.where(z > 0, 1.0, 0.0),
    "dleaky_relu": lambda z: np.where(z > 0, 1.0, _SLOPE),
}


def reference(name: str, z) -> np.ndarray:
    """Return f(z) in float64, for FP32 z other than NaN."""
    with np.errstate(all="ignore"):
        return _FLOAT64[name](np.asarray(z, np.float64))


def _logistic(z):
    return 1 / (1 + mp.exp(-z))


def _exact_argument(z):
    return mp.sqrt(8 / mp.pi) * (z + mpf("0.044715") * z**3)


def _dgelu_tanh_exact(z):
    v, slope = _exact_argument(z), mp.sqrt(8 / mp.pi) * (1 + 3 * mpf("0.044715") * z * z)
    return _logistic(v) + z * slope * _logistic(v) * _logistic(-v)


_MPMATH = {
    "identity": lambda z: z,
    "square": lambda z: z * z,
    "abs": abs,
    "sign": mp.sign,
    "relu": lambda z: max(z, mpf(0)),
    "exp": mp.exp,
    "ln": mp.log,
    "sqrt": mp.sqrt,
    "rsqrt": lambda z: 1 / mp.sqrt(z),
    "reciprocal": lambda z: 1 / z,
    "tanh": mp.tanh,
    "sigmoid": _logistic,
    "erf": mp.erf,
    "gelu": lambda z: z * mp.ncdf(z),
    "gelu_tanh": lambda z: z * _logistic(_exact_argument(z)),
    "silu": lambda z: z * _logistic(z),
    "softplus": lambda z: max(z, mpf(0)) + mp.log1p(mp.exp(-abs(z))),
    "sin": mp.sin,
    "cos": mp.cos,
    "dtanh": lambda z: mp.sech(z) ** 2,
    "dsigmoid": lambda z: _logistic(z) * _logistic(-z),
    "derf": lambda z: 2 / mp.sqrt(mp.pi) * mp.exp(-z * z),
    "dgelu": lambda z: mp.ncdf(z) + z * mp.npdf(z),
    "dgelu_tanh": _dgelu_tanh_exact,
    "dsilu": lambda z: _logistic(z) * (1 + z * _logistic(-z)),
    "dsoftplus": _logistic,
    "drelu": lambda z: mpf(1 if z > 0 else 0),
}

_LEAKY = {
    "leaky_relu": lambda z, alpha: z if z > 0 else alpha * z,
    "dleaky_relu": lambda z, alpha: mpf(1) if z > 0 else alpha,
}


def exact(name: str, z: float, alpha: float = float(_SLOPE)) -> mpmath.mpf:
    """Return f(z) to `DIGITS` digits, for a finite z in the function's domain; alpha: slope of the leaky functions."""
    with mp.workdps(DIGITS):
        if name in _LEAKY:
            return _LEAKY[name](mpf(float(z)), mpf(alpha))
        return _MPMATH[name](mpf(float(z)))
