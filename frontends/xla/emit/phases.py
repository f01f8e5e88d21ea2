"""Geometry of a convolution: which elements of the array each output multiplies with each element of the filter.

Between two elements of an array that is spread there are zeros, which need no products. Outputs are therefore divided
into phases, in which an element of the filter, a *tap*, meets the same kind of place: outputs first, first + every, ...
read elements start, start + step, ... of the array, without gaps, for the taps that do not meet zeros only.
If channels are few, several taps share the partitions.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import gcd

from neuroncore_rtl.frontends.xla.graph.operations import Convolution
from neuroncore_rtl.kernels.tiling.blocks import cut, length

__all__ = ["PhaseBox", "PhaseLine", "TapBlock", "phases_of", "tap_blocks"]

PhaseBox = tuple[slice, ...]
"""Part of the outputs of a phase: images, then planes, rows and columns."""
Tap = tuple[tuple[int, ...], tuple[int, ...]]
"""Place of a tap in the filter, and the elements that it meets for the first output."""


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


def phases_of(convolution: Convolution) -> Iterator[tuple[PhaseLine, ...]]:
    """Yield the phases: three lines, of planes, rows and columns; dimensions that there are not have one element."""
    rank = convolution.result.rank - 2
    own = [_lines(convolution, axis) for axis in range(rank)]
    yield from product(*[[PhaseLine(0, 1, 1, 1, ((0, 0),), 1)]] * (3 - rank), *own)


def _lines(convolution: Convolution, axis: int) -> list[PhaseLine]:
    window, extent, count = (
        convolution.window,
        convolution.operands[0].shape[2 + axis],
        convolution.result.shape[2 + axis],
    )
    size, stride, spread = window.size[axis], window.stride[axis], window.spread[axis]
    every, found = spread // gcd(stride, spread), []
    for first in range(min(every, count)):
        outputs, step = len(range(first, count, every)), every * stride // spread
        meets = [(tap, first * stride + tap * window.dilation[axis] - window.low[axis]) for tap in range(size)]
        taps = tuple(
            (size - 1 - tap if convolution.reverse[axis] else tap, place // spread)
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
