"""Loop nests of a pass: which dimension goes along the partitions, which are free, which are loops.

Adjacent dimensions that every tensor traverses as one are one. Reduced dimensions are free: a tile has all of their
elements. One other dimension goes along the partitions, in parts of as many elements as there are partitions. The
innermost dimension, if not reduced, is free or split between both, so that copies move adjacent elements.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

__all__ = ["Nest", "NestTile", "nest_on_chip", "nests_of"]

_RUN = 8
"""Minimum adjacent elements of a row, if the innermost dimension is split."""
_COUNT = 1 << 15
"""Maximum elements of a free dimension."""
_FREE = 4
"""Maximum free dimensions of an operand."""


@dataclass(frozen=True)
class NestTile:
    """Part of the iteration space that is processed at once.

    Arguments:
        starts: first index of each dimension.
        counts: elements of each dimension; 1 for loops.
    """

    starts: tuple[int, ...]
    counts: tuple[int, ...]


@dataclass(frozen=True)
class Nest:
    """Loop nest over dimensions that are coalesced and split.

    Arguments:
        extents: extent of each dimension.
        origin: for each dimension the dimension of the original space, and the number of its elements between two.
        row: the dimension along the partitions; None for none.
        free: dimensions within a partition, outermost first.
        counts: elements of a tile in each dimension.
        base: first index of the innermost dimension.
    """

    extents: tuple[int, ...]
    origin: tuple[tuple[int, int], ...]
    row: int | None
    free: tuple[int, ...]
    counts: tuple[int, ...]
    base: int = 0

    def tiles(self) -> Iterator[NestTile]:
        """Yield the tiles; the last ones of a dimension may be smaller."""
        steps = [range(0, extent, count) for extent, count in zip(self.extents, self.counts, strict=True)]
        for starts in product(*steps):
            counts = tuple(min(n, e - s) for s, n, e in zip(starts, self.counts, self.extents, strict=True))
            yield NestTile(starts, counts)

    def steps(self, steps: Sequence[int]) -> tuple[int, ...]:
        """Return the steps of a tensor along the nest's dimensions, from those along the original ones."""
        return tuple(steps[d] * unit for d, unit in self.origin)

    def offset(self, steps: Sequence[int]) -> int:
        """Return the element at which the nest starts."""
        return self.base * steps[self.origin[-1][0]] if self.base else 0


def nests_of(
    space: Sequence[int], reduced: set[int], accesses: Sequence[Sequence[int]], lanes: int, most: int
) -> list[Nest]:
    """Return the nests that cover an iteration space, a second one for what remains of an innermost dimension.

    Arguments:
        space: extents.
        reduced: dimensions that are reduced.
        accesses: steps of each tensor, index or presence of a value along each dimension.
        lanes: number of partitions.
        most: maximum elements of a tile in a partition, reductions apart.
    """
    dims = _coalesced(space, [d in reduced for d in range(len(space))], accesses)
    kept = [d for d in dims if d.origin not in reduced]
    if not kept or kept[-1] is not dims[-1] or (len(kept) > 1 and max(d.extent for d in kept[:-1]) >= lanes // 2):
        return [_nest(dims, reduced, lanes, most)]
    *outer, last = dims
    run = 1 if len(dims) == 1 else _RUN
    if parts := _halves(last, lanes, run):
        return [_nest([*outer, *parts], reduced, lanes, most)]
    if last.extent <= lanes * run:
        return [_nest(dims, reduced, lanes, most)]
    inner = last.extent // lanes
    main = [_Dimension(lanes, last.origin, inner), _Dimension(inner, last.origin)]
    rest = _Dimension(last.extent - lanes * inner, last.origin)
    return [
        _nest([*outer, *main], reduced, lanes, most), _nest([*outer, rest], reduced, lanes, most, lanes * inner)
    ]  # fmt: skip


def nest_on_chip(
    space: Sequence[int], row: int, free: Sequence[int], accesses: Sequence[Sequence[int]], lanes: int, unit: int
) -> Nest:
    """Return the nest with a given dimension along the partitions, in units if not 0, and given ones within a tile."""
    kinds = [1 if d == row else 2 if d in free else 0 for d in range(len(space))]
    dims = _coalesced(space, kinds, accesses)
    if unit:
        place = next(n for n, d in enumerate(dims) if d.origin == row)
        dims[place : place + 1] = [_Dimension(dims[place].extent // unit, row, unit), _Dimension(unit, row)]
    place = max(n for n, d in enumerate(dims) if d.origin == row)
    counts = [min(d.extent, lanes) if n == place else d.extent if d.origin in free else 1 for n, d in enumerate(dims)]
    return _made(dims, place, [n for n, d in enumerate(dims) if d.origin in free], counts)


def _nest(dims: list["_Dimension"], reduced: set[int], lanes: int, most: int, base: int = 0) -> Nest:
    kept = [d for d in dims if d.origin not in reduced]
    inner = kept[-1] if len(kept) > 1 and kept[-1] is dims[-1] else None
    rows = [d for d in kept if d is not inner]
    row = max(rows, key=lambda d: (min(d.extent, lanes), -dims.index(d)), default=None)
    free = [d for d in dims if d.origin in reduced or d is inner]
    room = max(1, most // max(1, prod(d.extent for d in free if d is not inner)))
    counts = [
        min(d.extent, lanes) if d is row else min(d.extent, room) if d is inner else d.extent if d in free else 1
        for d in dims
    ]
    return _made(dims, None if row is None else dims.index(row), [*map(dims.index, free)], counts, base)


def _made(dims: list["_Dimension"], row: int | None, free: Sequence[int], counts: Sequence[int], base: int = 0) -> Nest:
    extents, origin = tuple(d.extent for d in dims), tuple((d.origin, d.unit) for d in dims)
    return Nest(extents=extents, origin=origin, row=row, free=tuple(free), counts=tuple(counts), base=base)


@dataclass(eq=False)
class _Dimension:
    extent: int
    origin: int
    unit: int = 1


def _coalesced(space: Sequence[int], kinds: Sequence[int], accesses: Sequence[Sequence[int]]) -> list[_Dimension]:
    """Return dimensions, adjacent ones of a kind as one where all accesses traverse them so."""
    dims: list[_Dimension] = []
    for d, extent in reversed([*enumerate(space)]):
        if dims:
            inner = dims[0]
            same = all(steps[d] == steps[inner.origin] * inner.extent for steps in accesses)
            if same and kinds[d] == kinds[inner.origin] and extent * inner.extent < _COUNT * 64:
                inner.extent *= extent
                continue
        dims.insert(0, _Dimension(extent, d))
    return dims


def _halves(last: _Dimension, lanes: int, run: int) -> list[_Dimension] | None:
    """Return the dimension in two, the outer one of at most as many elements as there are lanes; None if too few."""
    for outer in range(min(lanes, last.extent // run), lanes // 2, -1):
        if last.extent % outer == 0:
            return [_Dimension(outer, last.origin, last.extent // outer), _Dimension(last.extent // outer, last.origin)]
    return None
