"""Derivatives by finite differences."""

from collections.abc import Callable

import numpy as np

__all__ = ["slopes_of"]


def slopes_of(function: Callable[[], float], *arguments: np.ndarray, step: float = 1e-6) -> list[np.ndarray]:
    """Return the derivatives of a function with respect to arrays, which it reads and which are changed meanwhile."""
    found = []
    for argument in arguments:
        slope = np.zeros_like(argument)
        for place in np.ndindex(argument.shape):
            kept, ends = argument[place], []
            for moved in (kept + step, kept - step):
                argument[place] = moved
                ends.append(function())
            argument[place] = kept
            slope[place] = (ends[0] - ends[1]) / (2 * step)
        found.append(slope)
    return found
