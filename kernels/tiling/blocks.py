"""Tiling of a product C[M, N]: groups of one PSUM bank each, and blocks of groups that share operands.

To shorten the last stores, the next-to-last group is cut in halves and the last one into ever narrower pieces. If HBM
is slower than the array, the last group has only two pieces, because every piece also costs records.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from neuroncore_rtl.spec.config import PSUM_BANKS, Config

__all__ = ["LAST", "OutputBlock", "OutputGroup", "blocks", "cut", "length", "neighbours"]

LAST = 8
"""Fraction (1 / LAST) of a group's columns in its last piece if HBM is slower than the array."""

PIECE = 16
"""Least columns of a piece on a small array; on a large one a piece must outlast the load of the next weights."""


def cut(start: int, stop: int, step: int) -> list[slice]:
    """Return consecutive slices of `step` indices; the last one may be shorter."""
    return [slice(first, min(first + step, stop)) for first in range(start, stop, step)]


def length(part: slice) -> int:
    """Return the number of indices of a slice."""
    return part.stop - part.start


def neighbours(parts: Sequence[slice], most: int, quadrant: int | None = None) -> list[slice]:
    """Group adjacent parts that together have at most `most` rows; return each group as a slice of `parts`.

    `quadrant` is the partitions per quadrant if each part must be a legal access within the joined tile, else None.
    """
    found, first = [], 0
    for number in range(1, len(parts) + 1):
        if number < len(parts):
            part, start = parts[number], parts[number].start - parts[first].start
            fits = part.stop - parts[first].start <= most
            if fits and (quadrant is None or (start % quadrant == 0 and length(part) <= 2 * quadrant)):
                continue
        found.append(slice(first, number))
        first = number
    return found


@dataclass(frozen=True)
class OutputGroup:
    """Part of the result C that is accumulated in one PSUM bank."""

    rows: slice
    columns: slice


@dataclass(frozen=True)
class OutputBlock:
    """Output groups of a strip (range of rows) of C that share operands."""

    strip: slice
    groups: tuple[OutputGroup, ...]

    @property
    def rows(self) -> slice:
        """Range of rows that all groups together have."""
        return slice(self.groups[0].rows.start, self.groups[-1].rows.stop)

    @property
    def columns(self) -> slice:
        """Range of columns that all groups together have."""
        return slice(self.groups[0].columns.start, self.groups[-1].columns.stop)


def blocks(strip: slice, m: int, n: int, config: Config, first: int = PSUM_BANKS) -> list[OutputBlock]:
    """Divide a strip of an m x n result into blocks, in the order of computation.

    The first block has at most `first` groups; less than the default if HBM is slower than the array.
    """
    width = ceil(n / ceil(n / config.psum_words))
    tiles = cut(strip.start, strip.stop, config.columns)
    found = []
    for columns in cut(0, n, width):
        groups = [OutputGroup(rows, columns) for rows in tiles]
        tail = []
        if strip.stop == m and columns.stop == n:
            tail = _divided(groups.pop(), _last(columns, len(tiles) < first, config))
            if len(groups) > first:
                half = max(_least(config), ceil(length(columns) / 2))
                groups += _divided(groups.pop(), cut(columns.start, columns.stop, half))
        while groups:
            size = PSUM_BANKS if found else first
            found.append(OutputBlock(strip, tuple(groups[:size])))
            groups = groups[size:]
        if tail:
            found.append(OutputBlock(strip, tuple(tail)))
    return found


def _least(config: Config) -> int:
    return max(PIECE, config.columns // 2)


def _divided(group: OutputGroup, parts: list[slice]) -> list[OutputGroup]:
    return [OutputGroup(group.rows, part) for part in parts]


def _last(columns: slice, late: bool, config: Config) -> list[slice]:
    least = _least(config)
    if late:
        last = max(least, length(columns) // LAST)
        return cut(columns.start, columns.stop, max(last, length(columns) - last))
    parts, start = [], columns.start
    while columns.stop - start > 2 * least:
        middle = (start + columns.stop + 1) // 2
        parts.append(slice(start, middle))
        start = middle
    return [*parts, *cut(start, columns.stop, least)]
