"""Which ranks an element comes by on its way round the group: the order in which it is reduced."""

import numpy as np

from neuroncore_rtl.spec.isa.collective import GRANULE, CollectiveKind

__all__ = ["channel_of", "last_rank", "orders", "segment_of"]


def channel_of(element, count: int) -> np.ndarray:
    """Return the channel of elements of a block of `count`: the first half of its granules is channel 0's."""
    granules = -(-count // GRANULE)
    return (np.asarray(element) // GRANULE >= (granules + 1) // 2).astype(np.int64)


def segment_of(element, count: int, ranks: int, chunk: int) -> np.ndarray:
    """Return the segments of elements, 0 to ranks - 1, of an ALL_REDUCE whose segments are `chunk` granules."""
    granules = -(-count // GRANULE)
    within = np.asarray(element) // GRANULE - channel_of(element, count) * ((granules + 1) // 2)
    return within // chunk % ranks


def last_rank(kind: CollectiveKind, count: int, ranks: int, chunk: int, block: int = 0) -> np.ndarray:
    """Return the rank that adds last, for every element: that of the segment; of REDUCE_SCATTER, that of the block."""
    if kind == CollectiveKind.REDUCE_SCATTER:
        return np.full(count, block)
    return segment_of(np.arange(count), count, ranks, chunk)


def orders(last: np.ndarray, ranks: int) -> np.ndarray:
    """Return the ranks in the order in which they add, int [ranks, elements].

    Arguments:
        last: of every element, the rank that adds last. Channel 0 comes to it from below, channel 1 from above.
        ranks: of the group.
    """
    element = np.arange(len(last))
    direction = 1 - 2 * channel_of(element, len(last))
    return (last + direction * np.arange(1, ranks + 1)[:, np.newaxis]) % ranks
