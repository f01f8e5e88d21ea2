"""How a product C[M, N] is cut: groups, each summed up in one PSUM bank, and blocks of groups that share operands.

A block is up to eight groups of the same columns of C. The last group of all is cut into ever narrower pieces, so that
little is left to be done when the last sum is ready.
"""

from dataclasses import dataclass
from math import ceil

from neuroncore_rtl.spec.config import PSUM_BANKS, PSUM_WORDS, Config

__all__ = ["OutputBlock", "OutputGroup", "blocks", "cut", "length"]

PIECE = 32
"""The narrowest piece of a group on a small array; on a large one a piece must outlast the load of the next weights."""


def cut(start: int, stop: int, step: int) -> list[slice]:
    """Return consecutive slices of `step`, the last one of what is left."""
    return [slice(first, min(first + step, stop)) for first in range(start, stop, step)]


def length(part: slice) -> int:
    """Return how many indices a slice has."""
    return part.stop - part.start


@dataclass(frozen=True)
class OutputGroup:
    """A part of C that is summed up in one PSUM bank."""

    rows: slice
    columns: slice


@dataclass(frozen=True)
class OutputBlock:
    """Groups that share their operands; rows and columns of C are those of all of them."""

    groups: tuple[OutputGroup, ...]

    @property
    def rows(self) -> slice:
        return slice(self.groups[0].rows.start, self.groups[-1].rows.stop)

    @property
    def columns(self) -> slice:
        return slice(self.groups[0].columns.start, self.groups[-1].columns.stop)


def blocks(strip: slice, m: int, n: int, config: Config) -> list[OutputBlock]:
    """Return the blocks of a strip of a result of m x n elements."""
    width = ceil(n / ceil(n / PSUM_WORDS))
    tiles = cut(strip.start, strip.stop, config.columns)
    found = []
    for columns in cut(0, n, width):
        last = strip.stop == m and columns.stop == n
        for first in range(0, len(tiles) - last, PSUM_BANKS):
            run = tiles[first : min(first + PSUM_BANKS, len(tiles) - last)]
            found.append(OutputBlock(tuple(OutputGroup(rows, columns) for rows in run)))
    if strip.stop < m:
        return found
    return [*found, OutputBlock(tuple(OutputGroup(tiles[-1], part) for part in _narrowing(columns, config)))]


def _narrowing(columns: slice, config: Config) -> list[slice]:
    """Cut columns in halves, of what is left of them each, down to the narrowest piece."""
    least = max(PIECE, config.columns // 2)
    parts, start = [], columns.start
    while columns.stop - start > 2 * least:
        middle = (start + columns.stop + 1) // 2
        parts.append(slice(start, middle))
        start = middle
    return [*parts, *cut(start, columns.stop, least)]
