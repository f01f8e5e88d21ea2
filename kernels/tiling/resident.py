"""Operands of a product in SBUF: tiles of K that come when they are first needed, and stay as long as there is room.

An operand [K, columns] is cut into *panels* of columns. A tile of K of a panel has a *place* in SBUF, and all places
are alike. Its columns come in *pieces*, each by a copy of its own when it is first needed, so that what uses a piece
waits for few DMA queues. When all places are taken, a tile makes room whose next use is the farthest away; of
several that are not needed any more the one that has been idle for the longest, so that what comes in its place seldom
has to wait.
"""

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf

from neuroncore_rtl.kernels.program import HbmTensor, Tensor
from neuroncore_rtl.kernels.tiling.blocks import length

__all__ = ["Panel", "Resident"]


@dataclass(frozen=True, eq=False)
class Panel:
    """Columns of an operand whose tiles of K have a place each.

    Arguments:
        source: the operand, [K, all columns].
        columns: of it.
        grain: columns of a stationary tile; 1 of a moving operand.
        pitch: elements from one stationary tile to the next in SBUF, at least `grain`.
    """

    source: HbmTensor
    columns: slice
    grain: int = 1
    pitch: int = 1

    @property
    def size(self) -> int:
        """Bytes of a place for a tile, in each partition."""
        return -(-length(self.columns) // self.grain) * self.pitch * self.source.format.bits // 8

    def offset(self, column: int) -> int:
        """Return where in a place a column starts, in bytes."""
        tile, rest = divmod(column - self.columns.start, self.grain)
        return (tile * self.pitch + rest) * self.source.format.bits // 8

    def pieces(self, columns: slice, width: int, first: int) -> list[slice]:
        """Return columns as copies bring them, adjacent ones together if they are so in SBUF, too.

        Arguments:
            columns: what is brought.
            width: of a copy, at most.
            first: of the first one; each of the next ones is as wide as those before it together.
        """
        found, start = [], columns.start
        while start < columns.stop:
            size = min(width, max(first, start - columns.start)) if self.pitch == self.grain else self.grain
            size = max(self.grain, size // self.grain * self.grain)
            found.append(slice(start, min(start + size, columns.stop)))
            start = found[-1].stop
        return found


@dataclass
class _Place:
    """Where a tile is, and which columns are there, or on their way, ascending."""

    address: int
    there: list[slice] = field(default_factory=list)

    def absent(self, columns: slice) -> list[slice]:
        """Return which of these columns are not."""
        found, start = [], columns.start
        for part in (*self.there, slice(columns.stop, columns.stop)):
            if start < min(part.start, columns.stop):
                found.append(slice(start, min(part.start, columns.stop)))
            start = max(start, part.stop)
        return found

    def add(self, columns: slice) -> None:
        self.there = sorted([*self.there, columns], key=lambda part: part.start)


class Resident:
    """The tiles that are in SBUF.

    Arguments:
        addresses: of the places.
        depth: the tiles of K, as rows of the operands.
        uses: of each panel the blocks that use it, ascending.
        load: appends the copy of a piece.
    """

    def __init__(
        self,
        addresses: Sequence[int],
        depth: Sequence[slice],
        uses: Mapping[Panel, Sequence[int]],
        load: Callable[[Tensor, HbmTensor, bool], None],
    ):
        self.depth = depth
        self._uses, self._load = uses, load
        self._free = list(reversed(addresses))
        self._places: dict[tuple[Panel, int], _Place] = {}  # the one that was used last is the last one
        self._block = self._first = 0

    def start(self, block: int, first: int) -> None:
        """Note that a block goes on with tiles of K from `first` on, and is over with those before."""
        self._block, self._first = block, first

    def lacking(self, panel: Panel, k: int, columns: slice) -> int:
        """Return how many of these columns of a tile are not there."""
        place = self._places.get((panel, k))
        return sum(length(part) for part in (place.absent(columns) if place else [columns]))

    def bring(self, panel: Panel, k: int, columns: slice, width: int, first: int | None = None) -> list[slice]:
        """Append the copies that bring columns of a tile, if they are not there; return the copies' columns.

        Arguments:
            panel, k, columns: what is wanted.
            width: columns of a copy, at most.
            first: of the first copy, if something waits for it already; None: nothing does.
        """
        place = self._place(panel, k)
        pieces = [piece for part in place.absent(columns) for piece in panel.pieces(part, width, first or width)]
        for piece in pieces:
            place.add(piece)
            target = Tensor(
                name=panel.source.name,
                format=panel.source.format,
                address=place.address + panel.offset(piece.start),
                partitions=length(self.depth[k]),
                shape=(length(piece),),
            )
            self._load(target, panel.source[self.depth[k], piece], first is not None)
        return pieces

    def address(self, panel: Panel, k: int, column: int) -> int:
        """Return where a column of a tile is."""
        return self._places[panel, k].address + panel.offset(column)

    def _place(self, panel: Panel, k: int) -> _Place:
        place = self._places.pop((panel, k), None)
        if place is None:
            place = _Place(self._free.pop() if self._free else self._places.pop(self._least_needed()).address)
        self._places[panel, k] = place
        return place

    def _least_needed(self) -> tuple[Panel, int]:
        def next_use(tile: tuple[Panel, int]) -> float:
            panel, k = tile
            uses = self._uses[panel]
            later = bisect_left(uses, self._block + (k < self._first))
            return uses[later] if later < len(uses) else inf

        return max(self._places, key=next_use)
