"""How a product C[M, N] is cut: groups, each summed up in one PSUM bank, and blocks of groups that share operands.

A block is up to eight groups of the same columns of C. The last group but one is cut in halves, so that HBM has less to
store at the end; the last one into ever narrower pieces, so that little is left to be done when the last sum is ready,
or, if HBM is slower than the array, into two, as each piece costs HBM records, too.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from neuroncore_rtl.spec.config import PSUM_BANKS, Config

__all__ = ["LAST", "OutputBlock", "OutputGroup", "blocks", "cut", "length", "neighbours"]

LAST = 8
"""Of so many parts the last group is one if HBM is slower than the array."""

PIECE = 16
"""The narrowest piece of a group on a small array; on a large one a piece must outlast the load of the next weights."""


def cut(start: int, stop: int, step: int) -> list[slice]:
    """Return consecutive slices of `step`, the last one of what is left."""
    return [slice(first, min(first + step, stop)) for first in range(start, stop, step)]


def length(part: slice) -> int:
    """Return how many indices a slice has."""
    return part.stop - part.start


def neighbours(parts: Sequence[slice], most: int, quadrant: int | None = None) -> list[slice]:
    """Return which parts go together, that have at most so many rows then.

    Arguments:
        parts: one after the other.
        most: rows.
        quadrant: of partitions, as an access to a part must be allowed where it is among the others; None: it need not.
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
    """A part of C that is summed up in one PSUM bank."""

    rows: slice
    columns: slice


@dataclass(frozen=True)
class OutputBlock:
    """Groups that share their operands, of a strip of C; `rows` and `columns` are those of all of them."""

    strip: slice
    groups: tuple[OutputGroup, ...]

    @property
    def rows(self) -> slice:
        return slice(self.groups[0].rows.start, self.groups[-1].rows.stop)

    @property
    def columns(self) -> slice:
        return slice(self.groups[0].columns.start, self.groups[-1].columns.stop)


def blocks(strip: slice, m: int, n: int, config: Config, first: int = PSUM_BANKS) -> list[OutputBlock]:
    """Return the blocks of a strip of a result of m x n elements.

    Arguments:
        strip: its rows.
        m, n: of the result.
        config: the machine's parameters.
        first: groups of the first block; with less of them HBM is slower than the array.
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
    """Cut columns of the last group: in two if operands are late, else in halves, of what is left of them each."""
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
