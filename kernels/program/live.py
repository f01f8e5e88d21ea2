"""Regions that instructions have touched, and with which a later one can conflict.

They are kept by pages of memory, so that looking for those that meet takes no longer in a long program.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from neuroncore_rtl.kernels.program.footprint import overlap
from neuroncore_rtl.spec.isa import Instruction, Region, Storage

__all__ = ["Live"]

PAGE_BITS = {Storage.SBUF: 12, Storage.PSUM: 11, Storage.HBM: 18}
"""Bits of an address within a page; those of HBM are larger, as a copy there goes over rows that are far apart."""

STORAGE_BIT = 48
"""Where in a page's number its storage is, above all addresses."""


class _Access(NamedTuple):
    """A region that an instruction of a lane touches: its span, its rows, and whether all of both is touched."""

    low: int
    high: int
    first: int
    end: int
    whole: bool
    lane: int
    number: int
    region: Region


_Table = dict[int, list[_Access]]


class Live:
    """What instructions have read and written so far.

    A write hides what it covers: who conflicts with that also conflicts with the write, which came after it.

    Arguments:
        ordered: whether what a lane reads is read in the order of its instructions, so that the last one speaks for
            those before it.
    """

    def __init__(self, ordered: bool = True):
        self._ordered = ordered
        self._reads: _Table = {}
        self._writes: _Table = {}

    def last(self, regions: Iterable[Region], known: Sequence[int] | None = None, *, written: bool) -> dict[int, int]:
        """Return by lane the number of the last instruction that touches one of `regions`.

        Arguments:
            regions: where to look.
            known: of each lane, how many do not matter; None: all do.
            written: only what was written.
        """
        found: dict[int, int] = {}
        for region in regions:
            low, high, first, end, whole, *_ = _access(region, 0, 0)
            for page in _pages(region):
                for table in (self._writes,) if written else (self._writes, self._reads):
                    near = [
                        (other.number, other)
                        for other in table.get(page, ())
                        if other.low < high and other.high > low and other.first < end and other.end > first
                        if known is None or other.number >= known[other.lane]
                    ]
                    near.sort(key=_number, reverse=True)
                    for number, other in near:
                        if number > found.get(other.lane, -1):
                            if (whole and other.whole) or overlap(other.region, region):
                                found[other.lane] = number
        return found

    def add(self, lane: int, number: int, instruction: Instruction) -> None:
        """Add what an instruction touches."""
        for region in instruction.writes:
            _hide(self._writes, region)
            _hide(self._reads, region)
        for region in instruction.reads:
            if self._ordered:
                _hide(self._reads, region, lane)
            _put(self._reads, _access(region, lane, number))
        for region in instruction.writes:
            _put(self._writes, _access(region, lane, number))


def _number(pair: tuple[int, _Access]) -> int:
    return pair[0]


def _pages(region: Region) -> range:
    low, high = region.span
    bits, base = PAGE_BITS[region.storage], region.storage << STORAGE_BIT
    return range(base + (low >> bits), base + (high - 1 >> bits) + 1)


def _access(region: Region, lane: int, number: int) -> _Access:
    (low, high), rows = region.span, region.rows
    return _Access(low, high, rows.start, rows[-1] + 1, rows.step == 1 and region.is_dense, lane, number, region)


def _put(table: _Table, access: _Access) -> None:
    for page in _pages(access.region):
        table.setdefault(page, []).append(access)


def _hide(table: _Table, region: Region, lane: int | None = None) -> None:
    """Remove what a region covers, of one lane or of all."""
    low, high, first, end, whole, *_ = _access(region, 0, 0)
    for page in _pages(region):
        if table.get(page):
            table[page] = [
                other
                for other in table[page]
                if not (
                    low <= other.low
                    and other.high <= high
                    and first <= other.first
                    and other.end <= end
                    and (lane is None or other.lane == lane)
                    and (whole or other.region.place == region.place)
                )
            ]
