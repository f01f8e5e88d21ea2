"""Indices of an instruction's elements in their tensor; they select the random words."""

import numpy as np

from neuroncore_rtl.golden.arith import threefry2x32
from neuroncore_rtl.spec.isa import Index

__all__ = ["element_index", "element_words"]

_MODULUS = 1 << 64


def element_index(index: Index, partitions: int, shape: tuple[int, ...]) -> np.ndarray:
    """Return each element's index, uint64, modulo 2**64: base + p * partition + the sum of i[d] * steps[d].

    p is the element's partition, counted from the first one, and i its index in the free dimensions.
    """
    steps = (index.partition, *(index.steps or (0,) * len(shape)))
    numbers = np.full((), index.base % _MODULUS, np.uint64)
    for count, step in zip((partitions, *shape), steps, strict=True):
        along = np.arange(count, dtype=np.uint64) * np.full(1, step % _MODULUS, np.uint64)
        numbers = numbers[..., np.newaxis] + along
    return numbers


def element_words(seed: int, stream: int, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return two random words for each element index: word 0 for rounding, word 1 for dropout."""
    low, high = numbers & np.uint64(0xFFFFFFFF), numbers >> np.uint64(32)
    return threefry2x32((seed, stream), (low.astype(np.uint32), high.astype(np.uint32)))
