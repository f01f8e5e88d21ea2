"""Live regions: those that instructions have touched, and with which a later one can conflict.

They are kept by pages of memory, so that looking for those that meet takes no longer in a long program.
"""

from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import NamedTuple

from neuroncore_rtl.kernels.program.footprint import overlap
from neuroncore_rtl.spec.isa import Region, Storage

__all__ = ["LiveRegions", "Reach", "reaches"]

PAGE_BITS = {Storage.SBUF: 12, Storage.PSUM: 11, Storage.HBM: 18}
"""Bits of an address within a page; those of HBM are larger, as a copy there goes over rows that are far apart."""

STORAGE_BIT = 48
"""Where in a page's number its storage is, above all addresses."""


class Reach(NamedTuple):
    """Where a region is: its span, its first row and the one after the last, whether all of both is touched, the pages
    that it is in."""

    low: int
    high: int
    first: int
    end: int
    whole: bool
    pages: range
    region: Region


class _Access(NamedTuple):
    """A region that an instruction of a lane touches."""

    low: int
    high: int
    first: int
    end: int
    whole: bool
    pages: range
    region: Region
    lane: int
    number: int


_Table = dict[int, list[_Access]]
_number = attrgetter("number")


def reaches(regions: Iterable[Region]) -> list[Reach]:
    """Return where regions are, for all that is asked of :class:`LiveRegions` about them."""
    return [_reach(region) for region in regions]


def _reach(region: Region) -> Reach:
    low, high = region.span
    step, first = region.partition_step, region.partition
    bits, base = PAGE_BITS[region.storage], region.storage << STORAGE_BIT
    pages = range(base + (low >> bits), base + (high - 1 >> bits) + 1)
    whole = step == 1 and region.is_dense
    return Reach(low, high, first, first + (region.partitions - 1) * step + 1, whole, pages, region)


class LiveRegions:
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

    def last(self, where: Iterable[Reach], known: Sequence[int] | None = None, *, written: bool) -> dict[int, int]:
        """Return by lane the number of the last instruction that touches one of some regions.

        Arguments:
            where: to look.
            known: of each lane, how many do not matter; None: all do.
            written: only what was written.
        """
        found: dict[int, int] = {}
        tables = (self._writes,) if written else (self._writes, self._reads)
        for low, high, first, end, whole, pages, region in where:
            for page in pages:
                for table in tables:
                    near = [
                        other
                        for other in table.get(page, ())
                        if other.low < high and other.high > low and other.first < end and other.end > first
                        if known is None or other.number >= known[other.lane]
                    ]
                    if len(near) > 1:
                        near.sort(key=_number, reverse=True)
                    for other in near:
                        number, lane = other.number, other.lane
                        if number > found.get(lane, -1) and ((whole and other.whole) or overlap(other.region, region)):
                            found[lane] = number
        return found

    def add(self, lane: int, number: int, reads: Iterable[Reach], writes: Iterable[Reach]) -> None:
        """Add what an instruction touches."""
        for reach in writes:
            _hide(self._writes, reach)
            _hide(self._reads, reach)
        for reach in reads:
            if self._ordered:
                _hide(self._reads, reach, lane)
            _put(self._reads, reach, lane, number)
        for reach in writes:
            _put(self._writes, reach, lane, number)


def _put(table: _Table, reach: Reach, lane: int, number: int) -> None:
    access = _Access(*reach, lane, number)
    for page in reach.pages:
        table.setdefault(page, []).append(access)


def _hide(table: _Table, reach: Reach, lane: int | None = None) -> None:
    """Remove what a region covers, of one lane or of all."""
    low, high, first, end, whole, pages, region = reach
    for page in pages:
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
