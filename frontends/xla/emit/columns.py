"""Division of a convolution's outputs into columns of PSUM banks."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from neuroncore_rtl.frontends.xla.emit.phases import PhaseBox
from neuroncore_rtl.kernels.tiling.blocks import cut, length

__all__ = ["ColumnPart", "banks_of", "parts_of"]


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
