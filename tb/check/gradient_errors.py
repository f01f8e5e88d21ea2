"""Errors of a sum of gradients with rounded partial sums, and the bound of these errors.

Relative errors refer to the average of the gradients, in float64; the host divides the sum by the number of gradients.
Where gradients cancel, an element's relative error may be large, so the bound refers to the magnitudes of the summands:
the error of a sum of n FP32 numbers g is at most (1 + u) ** (n - 1) - 1 times the sum of |g|, with u half a last place
of 1. In BF16 each g is first rounded to nearest, and the sum is rounded once more.
"""

from dataclasses import dataclass

import numpy as np

from neuroncore_rtl.run.report import Share
from neuroncore_rtl.spec.formats import BF16, FP32, FloatFormat

__all__ = ["GradientErrors", "errors_of"]


@dataclass(frozen=True)
class GradientErrors:
    """Relative errors of an average's elements and norm; a sum is wrong if the largest error exceeds its bound."""

    largest: float
    rms: float
    of_norm: float
    of_bound: float

    def rows(self) -> dict[str, float]:
        errors = {"largest": self.largest, "rms": self.rms, "of_norm": self.of_norm}
        return errors | {"of_what_rounding_allows": Share(self.of_bound)}


def errors_of(sums: np.ndarray, gradients: np.ndarray, fmt: FloatFormat, *, stochastic: bool = False) -> GradientErrors:
    """Return the errors of sums as averages; a `stochastic` last rounding has errors of up to a whole last place."""
    exact = gradients.astype(np.float64)
    ranks, average = len(exact), exact.mean(axis=0)
    error = np.abs(sums.astype(np.float64) / ranks - average)
    allowed = _error_bound(ranks, fmt, stochastic) * np.abs(exact).mean(axis=0)
    there = average != 0
    relative = error[there] / np.abs(average[there])
    shares = np.divide(error, allowed, out=np.where(error > 0, np.inf, 0.0), where=allowed > 0)
    return GradientErrors(
        largest=float(relative.max(initial=0)),
        rms=float(np.sqrt(np.mean(relative**2))),
        of_norm=float(np.linalg.norm(error) / np.linalg.norm(average)),
        of_bound=float(shares.max()) if np.isfinite(error).all() else np.inf,
    )


def _error_bound(ranks: int, fmt: FloatFormat, stochastic: bool) -> float:
    added = (1 + _half_place(FP32)) ** (ranks - 1)
    if fmt is BF16:
        added *= (1 + _half_place(BF16)) * (1 + _half_place(BF16) * (2 if stochastic else 1))
    return added - 1


def _half_place(fmt: FloatFormat) -> float:
    return 2.0 ** -(fmt.mantissa_bits + 1)
