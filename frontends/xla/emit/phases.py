"""Geometry of a convolution: which elements of the array each output multiplies with each element of the filter.

Between two elements of an array that is spread there are zeros, which need no products. Outputs are therefore divided
into phases, in which an element of the filter, a *tap*, meets the same kind of place: outputs first, first + every, ...
read elements start, start + step, ... of the array, without gaps, for the taps that do not meet zeros only.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import gcd

from neuroncore_rtl.frontends.xla.graph.operations import Convolution

__all__ = ["PhaseBox", "PhaseLine", "phases_of"]

PhaseBox = tuple[slice, ...]
"""Part of the outputs of a phase: images, then planes, rows and columns."""


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
