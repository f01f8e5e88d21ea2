"""A tensor of a copy as a DMA engine walks over it: runs of adjacent bytes, cut to what an access or a burst moves."""

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
    """Arguments:
    beats: accesses on chip, or beats of HBM.
    bursts: of HBM; on chip the same as `beats`.
    banks: of each access on chip, uint8 [beats].
    """

    beats: int
    bursts: int
    banks: np.ndarray


def walk_of(tensor: DmaTensor, shape: tuple[int, ...], rows: bool, config: Config) -> Walk:
    """Return how a tensor is walked over.

    Arguments:
        tensor, shape: of the copy.
        rows: whether the outermost dimension goes by row numbers.
        config: the machine's parameters.
    """
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
    return _cut(
        length, jumps, tensor.address % period, beat, grid, 0 if tensor.storage == Storage.HBM else pitch, banks
    )


@lru_cache(1 << 12)
def _cut(
    length: int, jumps: tuple[tuple[int, int], ...], address: int, beat: int, grid: int, pitch: int, banks: int
) -> Walk:
    """pitch: bytes from a bank to the next one; 0: there is none, as it is HBM."""
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
        return Walk(beats, bursts, _NONE)
    firsts = np.repeat(places // beat, each) * beat
    inside = np.arange(beats) - np.repeat(np.cumsum(each) - each, each)
    return Walk(beats, bursts, ((firsts + inside * beat) // pitch % banks).astype(np.uint8))


_NONE = np.zeros(0, np.uint8)
