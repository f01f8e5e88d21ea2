"""Geometry of a convolution: which elements of an array each output multiplies with each element of the filter.

Between two elements of an array that is spread there are zeros, which need no products. Outputs are therefore divided
into phases, in which an element of the filter, a *tap*, meets the same kind of place: outputs first, first + every, ...
read elements start, start + step, ... of the array, without gaps, for the taps that do not meet zeros only.
If channels are few, several taps share the partitions.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import gcd, prod

from neuroncore_rtl.kernels.tiling.blocks import cut, length

__all__ = [
    "ColumnPart", "PhaseBox", "PhaseLine", "TapBlock", "WindowShape", "banks_of", "parts_of", "phases_of", "tap_blocks",
]  # fmt: skip

PhaseBox = tuple[slice, ...]
"""Part of the outputs of a phase: images, then planes, rows and columns."""
Tap = tuple[tuple[int, ...], tuple[int, ...]]
"""Place of a tap in the filter, and the elements that it meets for the first output."""


@dataclass(frozen=True, kw_only=True)
class WindowShape:
    """Windows of an array, a number for each dimension.

    Arguments:
        size: elements of a window.
        stride: distance from one window to the next.
        low, high: padding before and after; may be negative.
        spread: dilation of the array.
        dilation: dilation of the window.
    """

    size: tuple[int, ...]
    stride: tuple[int, ...]
    low: tuple[int, ...]
    high: tuple[int, ...]
    spread: tuple[int, ...]
    dilation: tuple[int, ...]

    def counts(self, extents: Sequence[int]) -> tuple[int, ...]:
        """Return the number of windows in an array of these extents."""
        sides = zip(extents, self.low, self.high, self.spread, self.size, self.dilation, self.stride, strict=True)
        rooms = [
            (low + high + (n and (n - 1) * spread + 1) - (size - 1) * dilation - 1, stride)
            for n, low, high, spread, size, dilation, stride in sides
        ]
        return tuple(max(0, room // stride + 1) for room, stride in rooms)


@dataclass(frozen=True)
class PhaseLine:
    """A phase of one dimension.

    Arguments:
        first, every, count: the outputs.
        step: elements of the array from one output to the next.
        taps: for each tap its number in the filter, and the element that it meets for the first output.
        extent: elements of the array.
    """

    first: int
    every: int
    count: int
    step: int
    taps: tuple[tuple[int, int], ...]
    extent: int

    @property
    def outputs(self) -> slice:
        """The outputs in the whole dimension."""
        return slice(self.first, self.first + (self.count - 1) * self.every + 1, self.every)

    def reach(self, outputs: slice) -> tuple[int, int]:
        """Return the first element that some outputs meet, and the one behind the last; padding has other indices."""
        starts = [start for _, start in self.taps]
        return min(starts) + outputs.start * self.step, max(starts) + (outputs.stop - 1) * self.step + 1


def phases_of(
    window: WindowShape, reverse: Sequence[bool], extents: Sequence[int], counts: Sequence[int]
) -> Iterator[tuple[PhaseLine, ...]]:
    """Yield the phases: three lines, of planes, rows and columns; dimensions that there are not have one element.

    `extents` and `counts` are those of the array and of the outputs; `reverse` flips the filter.
    """
    own = [_lines(window, axis, reverse[axis], *sides) for axis, sides in enumerate(zip(extents, counts, strict=True))]
    yield from product(*[[PhaseLine(0, 1, 1, 1, ((0, 0),), 1)]] * (3 - len(own)), *own)


def _lines(window: WindowShape, axis: int, reverse: bool, extent: int, count: int) -> list[PhaseLine]:
    size, stride, spread = window.size[axis], window.stride[axis], window.spread[axis]
    every, found = spread // gcd(stride, spread), []
    for first in range(min(every, count)):
        outputs, step = len(range(first, count, every)), every * stride // spread
        meets = [(tap, first * stride + tap * window.dilation[axis] - window.low[axis]) for tap in range(size)]
        taps = tuple(
            (size - 1 - tap if reverse else tap, place // spread)
            for tap, place in meets
            if place % spread == 0 and place // spread < extent and place // spread + step * (outputs - 1) >= 0
        )
        found.append(PhaseLine(first, every, outputs, step, taps, extent))
    return found


@dataclass(frozen=True)
class TapBlock:
    """Products of one stationary operand.

    Arguments:
        rows: channels.
        taps: taps, for each of which the channels are along the partitions.
        copies: rows and columns of taps for which the array has shifted copies; a block's taps are the first of them.
    """

    rows: slice
    taps: tuple[Tap, ...]
    copies: tuple[int, int]

    @property
    def height(self) -> int:
        """Rows of the stationary operand."""
        return length(self.rows) * len(self.taps)


def tap_blocks(lines: Sequence[PhaseLine], channels: int, lanes: int) -> Iterator[TapBlock]:
    """Yield the blocks of a phase for so many partitions.

    Some rows of taps are divided into blocks of several rows, the rest into blocks of a row.
    """
    planes, rows, columns = (line.taps for line in lines)
    share = max(1, lanes // max(1, channels))
    down = min(share, len(rows))

    def across(height: int) -> int:
        return min(share // height, len(columns))

    def count(whole: int) -> int:
        rest = (len(rows) - whole) * -(-len(columns) // across(1))
        return -(-whole // down) * -(-len(columns) // across(down)) + rest

    whole = min(range(len(rows), -1, -1), key=count)
    for part in cut(0, channels, lanes):
        for plane in planes:
            for height, own in ((down, rows[:whole]), (1, rows[whole:])):
                for few in cut(0, len(own), height):
                    for some in cut(0, len(columns), across(height)):
                        taps = [zip(plane, row, column, strict=True) for column in columns[some] for row in own[few]]
                        places = tuple((place, start) for place, start in taps)
                        yield TapBlock(part, places, (height, across(height)))


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
