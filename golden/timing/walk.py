"""Accesses of a DMA engine to a tensor: runs of contiguous bytes, split into on-chip accesses or HBM bursts."""

from dataclasses import dataclass
from functools import lru_cache
from math import prod

import numpy as np

from neuroncore_rtl.spec import timing
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.costs import adjacent
from neuroncore_rtl.spec.isa import DmaTensor, Storage

__all__ = ["Walk", "walk_of"]


@dataclass(frozen=True, eq=False)
class Walk:
    """Accesses that one side of a copy makes to a tensor.

    Arguments:
        beats: number of on-chip accesses, or of beats of HBM.
        bursts: number of bursts of HBM; on chip equal to `beats`.
        packets: number of packets of HBM: the runs of an index of the outermost dimension, at most `RUNS_PER_PACKET`.
        banks: index of the bank of each on-chip access, uint8 [beats].
    """

    beats: int
    bursts: int
    packets: int
    banks: np.ndarray


def walk_of(tensor: DmaTensor, shape: tuple[int, ...], rows: bool, config: Config) -> Walk:
    """Return a copy's accesses to a tensor; `rows` tells whether row numbers index the outermost dimension."""
    size = config.hbm_bytes
    length, jumps = adjacent(tensor, shape, rows)
    if tensor.storage == Storage.PSUM:
        grid = beat = timing.PSUM_WORD_BYTES
        pitch, banks = config.psum_bank, config.psum_banks
    else:
        beat = size
        grid = size if tensor.storage == Storage.SBUF else timing.BURST_BEATS * size
        pitch, banks = config.line_bytes, config.sbuf_banks
    period = max(grid, pitch * banks)
    return _count_accesses(
        length, jumps, tensor.address % period, beat, grid, 0 if tensor.storage == Storage.HBM else pitch, banks
    )


@lru_cache(1 << 12)
def _count_accesses(
    length: int, jumps: tuple[tuple[int, int], ...], address: int, beat: int, grid: int, pitch: int, banks: int
) -> Walk:
    """Return the accesses to runs of `length` contiguous bytes, the first at `address`.

    `jumps` has count and step in bytes of each dimension in which the runs repeat. An on-chip access or HBM beat is
    aligned to its size `beat`; a burst does not cross a multiple of `grid`. `pitch` is the distance in bytes between
    adjacent banks' lines, 0 for HBM.
    """
    runs = prod(count for count, _ in jumps)
    if not pitch:
        varying = [(count, step % grid) for count, step in jumps if step % grid]
        same = runs // prod(count for count, _ in varying)
    else:
        varying, same = reversed(jumps), 1
    places = np.array([address])
    for count, step in varying:
        places = (places[:, None] + np.arange(count) * step).ravel()
    ends = places + length - 1
    each = ends // beat - places // beat + 1
    beats, bursts = (int((ends // unit - places // unit + 1).sum()) * same for unit in (beat, grid))
    if not pitch:
        outer = jumps[-1][0] if jumps else 1
        return Walk(beats, bursts, outer * -(-runs // (outer * timing.RUNS_PER_PACKET)), _NO_BANKS)
    firsts = np.repeat(places // beat, each) * beat
    inside = np.arange(beats) - np.repeat(np.cumsum(each) - each, each)
    return Walk(beats, bursts, 0, ((firsts + inside * beat) // pitch % banks).astype(np.uint8))


_NO_BANKS = np.zeros(0, np.uint8)
