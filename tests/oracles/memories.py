"""Comparison of two models on the same memories."""

from collections.abc import Callable, Sequence

import numpy as np

__all__ = ["changed_bytes"]


def changed_bytes(before: Sequence[np.ndarray], ours: Callable, theirs: Callable, *what) -> int:
    after = [[memory.copy() for memory in before] for _ in range(2)]
    for model, memories in zip((ours, theirs), after, strict=True):
        model(*memories)
    for mine, other in zip(*after, strict=True):
        assert np.array_equal(mine, other), (*what, np.argwhere(mine != other)[:4])
    return sum(int((mine != old).sum()) for mine, old in zip(after[0], before, strict=True))
