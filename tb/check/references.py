"""Errors of activation functions against mpmath."""

import math

import mpmath
import numpy as np
from mpmath import mp, mpf

from neuroncore_rtl.tb.check.oracles.functions import DIGITS, POSITIVE, exact

__all__ = ["ReferenceErrors", "reference_errors"]


class ReferenceErrors:
    """Largest errors of finite results, each with its argument.

    The error `ulp` is in last places of FP32 at the exact value, `relative` is for normal and `absolute` for exact
    values below 1.
    """

    def __init__(self):
        self.compared = 0
        self.ulp = self.relative = self.absolute = (0.0, 0.0)

    def add(self, z: float, result: float, wanted: mpmath.mpf) -> None:
        self.compared += 1
        difference = abs(mpf(result) - wanted)
        size = abs(wanted)
        exponent = max(int(mp.floor(mp.log(size, 2))) if size else -126, -126)
        self.ulp = max(self.ulp, (float(difference / mpf(2) ** (exponent - 23)), z))
        if size >= mpf(2) ** -126:
            self.relative = max(self.relative, (float(difference / size), z))
        if size < 1:
            self.absolute = max(self.absolute, (float(difference), z))

    def rows(self) -> dict[str, float]:
        """Return the errors for a report; `at` is the argument of `ulp`."""
        ulp, at = self.ulp
        return {"ulp": ulp, "at": at, "relative": self.relative[0], "absolute_below_1": self.absolute[0]}


def reference_errors(name: str, z: np.ndarray, results: np.ndarray, alpha: float) -> ReferenceErrors:
    """Return the errors of `results` for f(z); overflows and undefined results are not compared."""
    found = ReferenceErrors()
    for argument, result in zip(z.reshape(-1).tolist(), results.reshape(-1).tolist(), strict=True):
        if not (math.isfinite(argument) and math.isfinite(result)) or argument == 0:
            continue
        if argument < 0 and name in POSITIVE:
            continue
        with mp.workdps(DIGITS):
            found.add(argument, result, exact(name, argument, alpha))
    return found
