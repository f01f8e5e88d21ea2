"""How far results of the activation functions are from mpmath's, which TEST=activation reports."""

import math

import mpmath
import numpy as np
from mpmath import mp, mpf

from neuroncore_rtl.tb.check.oracles.functions import DIGITS, exact

__all__ = ["ReferenceErrors", "reference_errors"]

_POSITIVE = frozenset({"ln", "sqrt", "rsqrt"})
"""Functions that are defined for positive arguments only."""


class ReferenceErrors:
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


def reference_errors(name: str, z: np.ndarray, results: np.ndarray, alpha: float) -> ReferenceErrors:
    """Return the errors of `results` as f(z), both float32; what overflows FP32 or is not defined is left out."""
    found = ReferenceErrors()
    for argument, result in zip(z.reshape(-1).tolist(), results.reshape(-1).tolist(), strict=True):
        if not (math.isfinite(argument) and math.isfinite(result)) or argument == 0:
            continue
        if argument < 0 and name in _POSITIVE:
            continue
        with mp.workdps(DIGITS):
            found.add(argument, result, exact(name, argument, alpha))
    return found
