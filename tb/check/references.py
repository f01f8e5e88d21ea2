"""The activation functions by mpmath, with which TEST=activation measures how far the hardware is from them."""

import math

import mpmath
import numpy as np
from mpmath import mp, mpf

__all__ = ["Errors", "errors", "exact"]

DIGITS = 50
"""Decimal digits of the references; the far tails of a difference lose most of them."""


def _logistic(z, alpha):
    return 1 / (1 + mp.exp(-z))


def _cube(z):
    return mp.sqrt(8 / mp.pi) * (z + mpf("0.044715") * z**3)


def _dgelu_tanh(z, alpha):
    slope = mp.sqrt(8 / mp.pi) * (1 + 3 * mpf("0.044715") * z * z)
    return _logistic(_cube(z), 0) + z * slope * _logistic(_cube(z), 0) * _logistic(-_cube(z), 0)


_FUNCTIONS = {
    "identity": lambda z, alpha: z,
    "square": lambda z, alpha: z * z,
    "abs": lambda z, alpha: abs(z),
    "sign": lambda z, alpha: mp.sign(z),
    "relu": lambda z, alpha: max(z, mpf(0)),
    "leaky_relu": lambda z, alpha: z if z > 0 else alpha * z,
    "exp": lambda z, alpha: mp.exp(z),
    "ln": lambda z, alpha: mp.log(z),
    "sqrt": lambda z, alpha: mp.sqrt(z),
    "rsqrt": lambda z, alpha: 1 / mp.sqrt(z),
    "reciprocal": lambda z, alpha: 1 / z,
    "tanh": lambda z, alpha: mp.tanh(z),
    "sigmoid": _logistic,
    "erf": lambda z, alpha: mp.erf(z),
    "gelu": lambda z, alpha: z * mp.ncdf(z),
    "gelu_tanh": lambda z, alpha: z * _logistic(_cube(z), 0),
    "silu": lambda z, alpha: z * _logistic(z, 0),
    "softplus": lambda z, alpha: max(z, mpf(0)) + mp.log1p(mp.exp(-abs(z))),
    "sin": lambda z, alpha: mp.sin(z),
    "cos": lambda z, alpha: mp.cos(z),
    "dtanh": lambda z, alpha: mp.sech(z) ** 2,
    "dsigmoid": lambda z, alpha: _logistic(z, 0) * _logistic(-z, 0),
    "derf": lambda z, alpha: 2 / mp.sqrt(mp.pi) * mp.exp(-z * z),
    "dgelu": lambda z, alpha: mp.ncdf(z) + z * mp.npdf(z),
    "dgelu_tanh": _dgelu_tanh,
    "dsilu": lambda z, alpha: _logistic(z, 0) * (1 + z * _logistic(-z, 0)),
    "dsoftplus": _logistic,
    "drelu": lambda z, alpha: mpf(z > 0),
    "dleaky_relu": lambda z, alpha: mpf(1) if z > 0 else alpha,
}

_POSITIVE = frozenset({"ln", "sqrt", "rsqrt"})
"""Functions that are defined for positive arguments only."""


def exact(name: str, z: float, alpha: float) -> mpmath.mpf:
    """Return f(z) to `DIGITS` digits, for a finite z in the function's domain that is not zero."""
    with mp.workdps(DIGITS):
        return +_FUNCTIONS[name](mpf(z), mpf(alpha))


class Errors:
    """The largest errors of results, each with the argument at which it is.

    Attributes:
        compared: results that were finite and had a finite reference.
        ulp: in last places of FP32 at the exact value.
        relative: relative to the exact value, where that is a normal number.
        absolute: the difference itself, where the result is below 1.
    """

    def __init__(self):
        self.compared = 0
        self.ulp = self.relative = self.absolute = (0.0, 0.0)

    def add(self, z: float, result: float, wanted: mpmath.mpf) -> None:
        """Take one result into account."""
        self.compared += 1
        difference = abs(mpf(result) - wanted)
        size = abs(wanted)
        exponent = max(int(mp.floor(mp.log(size, 2))) if size else -126, -126)
        self.ulp = max(self.ulp, (float(difference / mpf(2) ** (exponent - 23)), z))
        if size >= mpf(2) ** -126:
            self.relative = max(self.relative, (float(difference / size), z))
        if size < 1:
            self.absolute = max(self.absolute, (float(difference), z))

    def __str__(self) -> str:
        ulp, at = self.ulp
        return f"{ulp:.2f} ulp at {at:.6g}, relative {self.relative[0]:.2g}, absolute below 1 {self.absolute[0]:.2g}"


def errors(name: str, z: np.ndarray, results: np.ndarray, alpha: float) -> Errors:
    """Return the errors of `results` as f(z), both float32; what overflows FP32 or is not defined is left out."""
    found = Errors()
    for argument, result in zip(z.reshape(-1).tolist(), results.reshape(-1).tolist(), strict=True):
        if not (math.isfinite(argument) and math.isfinite(result)) or argument == 0:
            continue
        if argument < 0 and name in _POSITIVE:
            continue
        with mp.workdps(DIGITS):
            found.add(argument, result, exact(name, argument, alpha))
    return found
