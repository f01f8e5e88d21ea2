"""Order in which the ranks add their values of an element: around the ring, up to the rank that adds last."""

import numpy as np

from neuroncore_rtl.spec.isa.collective import GRANULE, CollectiveKind

__all__ = ["channel_of", "last_rank", "orders", "segment_of"]


def channel_of(element, count: int) -> np.ndarray:
    """Return the ring channel that carries each element of a block of `count` elements.

    Channel 0 carries the first half of the block's granules, channel 1 the second half.
    """
    granules = -(-count // GRANULE)
    return (np.asarray(element) // GRANULE >= (granules + 1) // 2).astype(np.int64)


def segment_of(element, count: int, ranks: int, chunk: int) -> np.ndarray:
    """Return the segment of each element, 0 to ranks - 1, in an ALL_REDUCE with segments of `chunk` granules."""
    granules = -(-count // GRANULE)
    within = np.asarray(element) // GRANULE - channel_of(element, count) * ((granules + 1) // 2)
    return within // chunk % ranks


def last_rank(kind: CollectiveKind, count: int, ranks: int, chunk: int, block: int = 0) -> np.ndarray:
    """Return, for every element, the index of the rank that adds last: its segment, or for REDUCE_SCATTER `block`."""
    if kind == CollectiveKind.REDUCE_SCATTER:
        return np.full(count, block)
    return segment_of(np.arange(count), count, ranks, chunk)


def orders(last: np.ndarray, ranks: int) -> np.ndarray:
    """Return the order in which the ranks add, int [ranks, elements]; `last` is the rank that adds last, by element.

    On channel 0 the ranks add in ascending order, on channel 1 in descending order, modulo `ranks`.
    """
    element = np.arange(len(last))
    direction = 1 - 2 * channel_of(element, len(last))
    return (last + direction * np.arange(1, ranks + 1)[:, np.newaxis]) % ranks
