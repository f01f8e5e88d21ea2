"""Live accesses: the accesses to memory that a later instruction can conflict with, indexed by pages of memory.

A region that spans many pages is indexed by larger ones, of a higher level.
"""

from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from typing import NamedTuple

from neuroncore_rtl.kernels.program.footprint import overlap
from neuroncore_rtl.spec.isa import Region, Storage

__all__ = ["LiveRegions", "Reach", "reaches"]

PAGE_BITS = {Storage.SBUF: 8, Storage.PSUM: 8, Storage.HBM: 18}
"""Bits of an address within a page of the lowest level; larger in HBM, where a copy touches rows that are far apart."""

LEVEL_BITS, LEVELS = 3, 8
"""Bits by which an address within a page grows from level to level, and the number of levels."""

MOST_PAGES = 1 << LEVEL_BITS
"""Most pages that a region touches at its level, unless this is the highest."""


class Reach(NamedTuple):
    """Region of memory with its bounding box.

    The box has the bytes [low, high) of the partitions [first, end). `whole` tells whether the region fills the box;
    `pages` are the pages of its level that the box touches.
    """

    low: int
    high: int
    first: int
    end: int
    whole: bool
    level: int
    pages: range
    region: Region


class _Access(NamedTuple):
    low: int
    high: int
    first: int
    end: int
    whole: bool
    level: int
    pages: range
    region: Region
    lane: int
    number: int


_Table = dict[tuple[Storage, int], dict[int, list[_Access]]]
"""Accesses by storage and level, then by page."""

_number = attrgetter("number")


def reaches(regions: Iterable[Region]) -> list[Reach]:
    """Return the bounding boxes of regions."""
    return [_reach(region) for region in regions]


def _reach(region: Region) -> Reach:
    low, high = region.span
    step, first = region.partition_step, region.partition
    level, pages = 0, _pages(region.storage, 0, low, high)
    while len(pages) > MOST_PAGES and level < LEVELS - 1:
        level += 1
        pages = _pages(region.storage, level, low, high)
    whole = step == 1 and region.is_dense
    return Reach(low, high, first, first + (region.partitions - 1) * step + 1, whole, level, pages, region)


def _pages(storage: Storage, level: int, low: int, high: int) -> range:
    bits = PAGE_BITS[storage] + LEVEL_BITS * level
    return range(low >> bits, (high - 1 >> bits) + 1)


def _levels(table: _Table, reach: Reach) -> Iterator[tuple[dict[int, list[_Access]], range]]:
    """Yield the accesses of each level by page, and the pages of that level that a region touches."""
    storage = reach.region.storage
    for level in range(LEVELS):
        if found := table.get((storage, level)):
            yield found, reach.pages if level == reach.level else _pages(storage, level, reach.low, reach.high)


class LiveRegions:
    """Regions that instructions have read and written so far.

    A write removes all accesses that it covers, since an instruction that conflicts with them also conflicts with the
    write. A *lane* is an in-order stream of an engine: its instructions complete in order. If also reads complete in
    this order (`ordered`), a read also removes earlier reads of its lane that it covers.
    """

    def __init__(self, ordered: bool = True):
        self._ordered = ordered
        self._reads: _Table = {}
        self._writes: _Table = {}

    def last(self, where: Iterable[Reach], known: Sequence[int] | None = None, *, written: bool) -> dict[int, int]:
        """Return, by lane (in-order stream), the index of the last instruction that accesses a region of `where`.

        In lane l the first `known[l]` instructions are ignored. If `written`, only writes count.
        """
        found: dict[int, int] = {}
        tables = (self._writes,) if written else (self._writes, self._reads)
        for reach in where:
            low, high, first, end, whole, _, _, region = reach
            for accesses, pages in (each for table in tables for each in _levels(table, reach)):
                for page in pages:
                    near = [
                        other
                        for other in accesses.get(page, ())
                        if page == pages.start or page == other.pages.start  # the first page that both touch
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
        """Add the accesses of instruction `number` of stream `lane`; drop earlier accesses that they cover."""
        for reach in writes:
            _hide(self._writes, reach)
            _hide(self._reads, reach)
        for reach in reads:
            if self._ordered:
                _hide(self._reads, reach, lane)
            _insert(self._reads, reach, lane, number)
        for reach in writes:
            _insert(self._writes, reach, lane, number)


def _insert(table: _Table, reach: Reach, lane: int, number: int) -> None:
    access = _Access(*reach, lane, number)
    accesses = table.setdefault((reach.region.storage, reach.level), {})
    for page in reach.pages:
        accesses.setdefault(page, []).append(access)


def _hide(table: _Table, reach: Reach, lane: int | None = None) -> None:
    low, high, first, end, whole, _, _, region = reach
    for accesses, pages in _levels(table, reach):
        for page in pages:
            if accesses.get(page):
                accesses[page] = [
                    other
                    for other in accesses[page]
                    if not (
                        low <= other.low
                        and other.high <= high
                        and first <= other.first
                        and other.end <= end
                        and (lane is None or other.lane == lane)
                        and (whole or other.region.place == region.place)
                    )
                ]
