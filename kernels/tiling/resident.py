"""Cache of a product's operand tiles in SBUF: loaded on first use, evicted by farthest next use.

An operand [K, columns] is cut into *panels* of columns. A tile of K of a panel occupies a *slot* in SBUF; all slots
have the same size. Its columns are loaded in *pieces*, one copy each, on first use, so that a consumer of a piece
depends on few DMA queues. If all slots are occupied, the tile with the farthest next use is evicted. Among tiles
without a next use it is the one that has been idle longest: its last reader has most likely retired.
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
    """Range of columns of an operand, cached tile by tile along K; each tile occupies one slot in SBUF.

    `source` is the operand, [K, all columns]. `grain` is the columns of a stationary tile; 1 for a moving operand.
    `pitch` is the elements between the starts of stationary tiles in SBUF, at least `grain`.
    """

    source: HbmTensor
    columns: slice
    grain: int = 1
    pitch: int = 1

    @property
    def size(self) -> int:
        """Size of the slot for one tile, in bytes per partition."""
        return -(-length(self.columns) // self.grain) * self.pitch * self.source.format.bits // 8

    def offset(self, column: int) -> int:
        """Return the offset of a column within a slot, in bytes."""
        tile, rest = divmod(column - self.columns.start, self.grain)
        return (tile * self.pitch + rest) * self.source.format.bits // 8

    def pieces(self, columns: slice, width: int, first: int) -> list[slice]:
        """Split columns into copies of at most `width`; return the columns of each copy, which are adjacent in SBUF.

        The first copy has `first` columns; each later copy is as wide as all earlier copies together.
        """
        found, start = [], columns.start
        while start < columns.stop:
            size = min(width, max(first, start - columns.start)) if self.pitch == self.grain else self.grain
            size = max(self.grain, size // self.grain * self.grain)
            found.append(slice(start, min(start + size, columns.stop)))
            start = found[-1].stop
        return found


@dataclass
class _Slot:
    """Slot for one tile in SBUF: the address, and the ascending ranges of columns that are loaded or in flight."""

    address: int
    there: list[slice] = field(default_factory=list)

    def absent(self, columns: slice) -> list[slice]:
        found, start = [], columns.start
        for part in (*self.there, slice(columns.stop, columns.stop)):
            if start < min(part.start, columns.stop):
                found.append(slice(start, min(part.start, columns.stop)))
            start = max(start, part.stop)
        return found

    def add(self, columns: slice) -> None:
        self.there = sorted([*self.there, columns], key=lambda part: part.start)


class Resident:
    """Cache of operand tiles in SBUF.

    `depth` are the tiles of K, `uses` the ascending indices of the blocks that use each panel. `load` appends a copy;
    its arguments are the target, the source and whether an instruction is already waiting for the data.
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
        self._places: dict[tuple[Panel, int], _Slot] = {}  # in order of last use
        self._block = self._first = 0

    def start(self, block: int, first: int) -> None:
        """Set the position of the program: the index of the block, and of the first tile along K still to multiply."""
        self._block, self._first = block, first

    def lacking(self, panel: Panel, k: int, columns: slice) -> int:
        """Return the number of a tile's columns that are not loaded."""
        place = self._places.get((panel, k))
        return sum(length(part) for part in (place.absent(columns) if place else [columns]))

    def bring(self, panel: Panel, k: int, columns: slice, width: int, first: int | None = None) -> list[slice]:
        """Append the copies that load the absent columns of a tile; return the columns of each copy.

        `first` is the columns of the first copy if an instruction is already waiting for it, otherwise None; `width`
        the maximum of the others.
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
        """Return the SBUF address of a column of tile `k` of a panel."""
        return self._places[panel, k].address + panel.offset(column)

    def _place(self, panel: Panel, k: int) -> _Slot:
        place = self._places.pop((panel, k), None)
        if place is None:
            place = _Slot(self._free.pop() if self._free else self._places.pop(self._least_needed()).address)
        self._places[panel, k] = place
        return place

    def _least_needed(self) -> tuple[Panel, int]:
        def next_use(tile: tuple[Panel, int]) -> float:
            panel, k = tile
            uses = self._uses[panel]
            later = bisect_left(uses, self._block + (k < self._first))
            return uses[later] if later < len(uses) else inf

        return max(self._places, key=next_use)
