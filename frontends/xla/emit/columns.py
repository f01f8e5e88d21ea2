"""Division of a convolution's outputs into columns of PSUM banks."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from neuroncore_rtl.frontends.xla.emit.phases import PhaseBox, PhaseLine
from neuroncore_rtl.kernels.library.matmul import passes
from neuroncore_rtl.kernels.tiling.blocks import cut, length
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.formats import Format

__all__ = ["ColumnPart", "banks_of", "column_runs", "is_packed", "parts_of"]

_RECORD = 16
"""Cycles of the tensor engine for a record besides its columns."""


@dataclass(frozen=True)
class ColumnPart:
    """Outputs with adjacent sums in a bank; `pitch` is the distance of rows that are multiplied together."""

    box: PhaseBox
    columns: int
    pitch: int = 0


def parts_of(box: PhaseBox, words: int, flat: bool, pitch: int) -> Iterator[ColumnPart]:
    """Yield parts of at most as many columns as a bank has words; in a flat tile, images and planes are adjacent."""
    extents, counts, inner = [*map(length, box)], [1] * len(box), 1
    if flat:
        for axis in reversed(range(len(box))):
            counts[axis] = min(extents[axis], words // inner)
            inner *= extents[axis]
            if counts[axis] < extents[axis]:
                break
    else:
        counts[3] = min(extents[3], words)
        if counts[3] == extents[3]:
            counts[2] = min(extents[2], (words - counts[3]) // pitch + 1 if pitch else words // counts[3])
    for part in product(*(cut(one.start, one.stop, count) for one, count in zip(box, counts, strict=True))):
        rows, width = length(part[2]), length(part[3])
        if flat or not pitch or rows == 1:
            yield ColumnPart(part, prod(map(length, part)))
        else:
            yield ColumnPart(part, (rows - 1) * pitch + width, pitch)


def banks_of(parts: Sequence[ColumnPart], words: int) -> list[list[ColumnPart]]:
    """Return the parts that share each bank."""
    found: list[list[ColumnPart]] = []
    for part in parts:
        if not found or sum(one.columns for one in found[-1]) + part.columns > words:
            found.append([])
        found[-1].append(part)
    return found


def is_packed(config: Config, lines: Sequence[PhaseLine], images: int, channels: int, fmt: Format) -> bool:
    """Return whether taps that share the partitions take less time if each has its own elements.

    The other way is a copy of the array for each row of taps, which is loaded once, but shares partitions less well.
    """
    share = config.rows // max(1, channels)
    if share < 2:
        return False
    (planes, rows, columns), taps = (line.count for line in lines), [len(line.taps) for line in lines]
    count, total, step = len(passes(fmt)), images * planes * rows * columns, lines[2].step
    moves = images * planes * (1 if lines[1].step == step == 1 else rows)
    shared = count * taps[0] * taps[2] * -(-taps[1] // share) * (total + _RECORD * moves)
    row = columns if step > 1 else -(-columns * fmt.bits // (8 * config.hbm_bytes)) + 1
    beats = prod(taps) * channels * images * planes * rows * row
    blocks = -(-prod(taps) // share)
    alone = count * blocks * (total + _RECORD * -(-total // config.psum_words))
    return max(alone, beats // config.hbm_ports) < shared


def column_runs(numbers: Sequence[int]) -> Iterator[slice]:
    """Yield the slices of consecutive numbers."""
    first = 0
    for place in range(1, len(numbers) + 1):
        if place == len(numbers) or numbers[place] != numbers[place - 1] + 1:
            yield slice(first, place)
            first = place
