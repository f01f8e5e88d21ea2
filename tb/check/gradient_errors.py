"""How far a sum of gradients, rounded on its way, is from the exact one, and how far it may be at most.

Relative errors are of the average of the gradients, in float64; the division by their number is the host's. Where
gradients cancel each other an element's relative error may be large, so the bound is in terms of what was added: a sum
of n numbers g in FP32 is off by at most (1 + u) ** (n - 1) - 1 of the sum of |g|, with u half of a last place of 1. In
BF16 every g is rounded before, to nearest, and the sum once more.
"""

from dataclasses import dataclass

import numpy as np

from neuroncore_rtl.spec.formats import BF16, FP32, FloatFormat

__all__ = ["GradientErrors", "errors_of"]


@dataclass(frozen=True)
class GradientErrors:
    """Errors of an average.

    Arguments:
        largest: of all elements' relative errors.
        rms: root of the mean of their squares.
        of_norm: the norm of the error by the norm of the average.
        of_bound: largest share of an element's error in what it may be; above 1 the sum is wrong.
    """

    largest: float
    rms: float
    of_norm: float
    of_bound: float

    def shown(self) -> dict[str, str]:
        """Return them as a report shows them."""
        errors = {"largest": self.largest, "rms": self.rms, "of the norm": self.of_norm}
        shown = {name: f"{error:.2e}" for name, error in errors.items()}
        return shown | {"of what rounding allows": f"{self.of_bound:.1%}"}


def errors_of(sums: np.ndarray, gradients: np.ndarray, fmt: FloatFormat, *, stochastic: bool = False) -> GradientErrors:
    """Return the errors of sums of gradients, by the number of them.

    Arguments:
        sums: the values [elements].
        gradients: float32 [ranks, elements], what they are the sums of.
        fmt: FP32, or BF16 of sums in FP32 of gradients in BF16.
        stochastic: the last rounding is no rounding to nearest: it may be off by a whole last place.
    """
    exact = gradients.astype(np.float64)
    ranks, average = len(exact), exact.mean(axis=0)
    error = np.abs(sums.astype(np.float64) / ranks - average)
    allowed = _bound(ranks, fmt, stochastic) * np.abs(exact).mean(axis=0)
    there = average != 0
    relative = error[there] / np.abs(average[there])
    shares = np.divide(error, allowed, out=np.where(error > 0, np.inf, 0.0), where=allowed > 0)
    return GradientErrors(
        largest=float(relative.max(initial=0)),
        rms=float(np.sqrt(np.mean(relative**2))),
        of_norm=float(np.linalg.norm(error) / np.linalg.norm(average)),
        of_bound=float(shares.max()) if np.isfinite(error).all() else np.inf,
    )


def _bound(ranks: int, fmt: FloatFormat, stochastic: bool) -> float:
    """Return the share of the sum of magnitudes by which a sum may be off."""
    added = (1 + _half_place(FP32)) ** (ranks - 1)
    if fmt is BF16:
        added *= (1 + _half_place(BF16)) * (1 + _half_place(BF16) * (2 if stochastic else 1))
    return added - 1


def _half_place(fmt: FloatFormat) -> float:
    """Return half of a last place of 1: what rounding to nearest changes of a number at most, relative to it."""
    return 2.0 ** -(fmt.mantissa_bits + 1)
