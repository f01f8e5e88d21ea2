"""Spilling: tiles leave a memory that is full, and return before their next use.

The vector engine copies tiles of PSUM to SBUF, a DMA engine those of SBUF to HBM. The tile whose next use is farthest
leaves first (L. Belady, "A study of replacement algorithms for a virtual-storage computer", 1966), but tiles of short
rows last. A tile that has not changed since it last left is not stored again.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from neuroncore_rtl.kernels.program.allocation import OutOfMemory, lives
from neuroncore_rtl.kernels.program.allocator import BUFFER_BITS, Allocator, buffer_of, buffers_of, offset_of
from neuroncore_rtl.kernels.program.copies import dma_copy
from neuroncore_rtl.kernels.program.entries import ProgramStep
from neuroncore_rtl.kernels.program.instructions import tensor_copy
from neuroncore_rtl.kernels.program.tensor import HbmTensor, Tensor
from neuroncore_rtl.kernels.source import SourceLine
from neuroncore_rtl.spec.formats import UINT8, UINT32
from neuroncore_rtl.spec.isa import Region, Storage
from neuroncore_rtl.spec.isa.access import allowed_start, storage_partitions

__all__ = ["Spill", "spill", "spill_table"]

MOST_BOXES = 64
"""Boxes of written bytes beyond which one box around them is copied."""

SHORT = 512
"""Bytes of a row below which a tile is short: a copy takes as long as that of a longer one (docs/rates.md)."""

_Box = tuple[int, int, int, int]
"""First partition, end of the partitions, first byte, end of the bytes."""


@dataclass(frozen=True)
class Spill:
    """Copy of a tile that leaves its memory, or returns.

    Arguments:
        name: name of the tile.
        source: line of the kernel that first writes it.
        of, to: the two memories.
        size: bytes in all partitions.
    """

    name: str
    source: SourceLine
    of: Storage
    to: Storage
    size: int


def spill(
    steps: Sequence[ProgramStep], space: Allocator, storage: Storage, share: float
) -> tuple[list[ProgramStep], list[Spill]]:
    """Return the steps with copies, so that at most `share` of a memory is live; and these copies.

    Raises:
        OutOfMemory: if the tiles of one instruction, with those that several sections use, exceed the share.
    """
    walk = _Walk(steps, space, storage, share)
    for number, step in enumerate(steps):
        walk.add(number, step)
    return walk.found, walk.spills


def spill_table(spills: Iterable[Spill]) -> list[dict[str, object]]:
    """Return rows of a report: the copies of each tile's name and line, from memory to memory."""
    found: dict[str, list[int]] = {}
    for one in spills:
        found.setdefault(f"{one.name} from {one.of.name} to {one.to.name}, {one.source}", []).append(one.size)
    return [{"tile": tile, "copies": len(sizes), "bytes": sum(sizes)} for tile, sizes in found.items()]


class _Slot(NamedTuple):
    """Place of a tile: a buffer on chip, or rows of HBM."""

    storage: Storage
    address: int

    def part(self, name: str, pitch: int, box: _Box) -> Tensor | HbmTensor:
        """Return a box of the tile; `pitch` are the bytes of a partition."""
        first, end, low, high = box
        fmt = UINT8 if low % 4 or high % 4 else UINT32
        count, size = (high - low) * 8 // fmt.bits, fmt.bits // 8
        if self.storage == Storage.HBM:
            address, shape, steps = self.address + first * pitch + low, (end - first, count), (pitch // size, 1)
            return HbmTensor(name=name, format=fmt, address=address, shape=shape, steps=steps)
        return Tensor(
            name=name,
            format=fmt,
            address=self.address + low,
            shape=(count,),
            partition=first,
            partitions=end - first,
            storage=self.storage,
        )


class _Walk:
    """Walk over the steps in their order; a tile is known by the number of its first buffer."""

    def __init__(self, steps: Sequence[ProgramStep], space: Allocator, storage: Storage, share: float):
        self.found: list[ProgramStep] = []
        self.spills: list[Spill] = []
        self._steps, self._space, self._storage = steps, space, storage
        self._partitions = storage_partitions(storage, space.config)
        first, last = lives(steps, space.buffers)
        sizes = {
            number: one.size for number, one in space.buffers.items() if one.storage == storage and number in first
        }
        self._sizes = {
            number: size
            for number, size in sizes.items()
            if steps[first[number]].section == steps[last[number]].section
        }
        # A tile that several sections use stays, since sections may be skipped or repeated.
        self._shared = sum(sizes.values()) - sum(self._sizes.values())
        self._room = share * len(space.room(storage)) - self._shared
        self._used = 0
        self._uses: dict[int, list[int]] = {number: [] for number in self._sizes}
        for number, step in enumerate(steps):
            for tile in self._tiles(step):
                self._uses[tile].append(number)
        self._resident: dict[int, int] = {}  # buffer that holds the tile now
        self._copies: dict[int, tuple[_Slot, list[_Box]]] = {}
        self._changed: set[int] = set()

    def add(self, number: int, step: ProgramStep) -> None:
        """Append step `number`, after the copies that it requires."""
        own = self._tiles(step)
        missing = [tile for tile in own if tile not in self._resident]
        self._used += sum(self._sizes[tile] for tile in missing)
        while self._used > self._room:
            others = [tile for tile in self._resident if tile not in own]
            if not others:
                raise OutOfMemory(self._refusal(own, step), self._storage)
            self._leave(max(others, key=lambda tile: self._gain(tile, number)), number, step)
        for tile in missing:
            self._enter(tile, step)

        def place(storage: Storage, address: int) -> int:
            buffer = self._resident.get(buffer_of(address), buffer_of(address))
            return (buffer << BUFFER_BITS) + offset_of(address)

        buffers = tuple(self._resident.get(buffer, buffer) for buffer in step.buffers)
        self.found.append(step._replace(instruction=step.instruction.moved(place), buffers=buffers))
        self._changed.update(buffers_of(step.instruction.writes))
        for tile in own:
            if self._uses[tile][-1] == number:
                self._remove(tile)

    def _tiles(self, step: ProgramStep) -> list[int]:
        return [buffer for buffer in step.touched if buffer in self._sizes]

    def _gain(self, tile: int, number: int) -> tuple[bool, int]:
        return self._sizes[tile] >= SHORT, self._next_use(tile, number)

    def _next_use(self, tile: int, number: int) -> int:
        uses = self._uses[tile]
        return uses[bisect_left(uses, number)]

    def _remove(self, tile: int) -> None:
        self._used -= self._sizes[tile]
        del self._resident[tile]

    def _leave(self, tile: int, number: int, step: ProgramStep) -> None:
        """Remove a tile before step `number`; copy it, unless an earlier copy is still right."""
        if tile in self._changed:
            slot = self._copies[tile][0] if tile in self._copies else self._slot(tile)
            boxes = _boxes(self._written(tile, number))
            self._copies[tile] = slot, boxes
            self._changed.remove(tile)
            self._copy(tile, slot, self._place(tile), boxes, step)
        self._remove(tile)

    def _enter(self, tile: int, step: ProgramStep) -> None:
        """Place a tile: at first in its own buffer, later in a new one, from its copy."""
        if tile not in self._copies:
            self._resident[tile] = tile
            return
        name, size = self._space.buffers[tile].name, self._sizes[tile]
        self._resident[tile] = buffer_of(self._space.temporary(self._storage, name, size))
        slot, boxes = self._copies[tile]
        self._copy(tile, self._place(tile), slot, boxes, step)

    def _place(self, tile: int) -> _Slot:
        return _Slot(self._storage, self._resident[tile] << BUFFER_BITS)

    def _slot(self, tile: int) -> _Slot:
        name, size = self._space.buffers[tile].name, self._sizes[tile]
        if self._storage == Storage.PSUM and self._partitions <= self._space.config.partitions:
            return _Slot(Storage.SBUF, self._space.temporary(Storage.SBUF, name, size))
        return _Slot(Storage.HBM, self._space.hbm_bytes(name, self._partitions * size))

    def _copy(self, tile: int, to: _Slot, of: _Slot, boxes: Sequence[_Box], step: ProgramStep) -> None:
        """Append copies of the boxes of a tile, before `step`."""
        name, pitch = self._space.buffers[tile].name, self._sizes[tile]
        size = sum((end - first) * (high - low) for first, end, low, high in boxes)
        self.spills.append(Spill(name, self._steps[self._uses[tile][0]].source, of.storage, to.storage, size))
        for box in boxes:
            dst, src = to.part(name, pitch, box), of.part(name, pitch, box)
            if isinstance(dst, Tensor) and isinstance(src, Tensor) and self._engine_starts_at(box):
                copy = tensor_copy(dst, src)
            else:
                copy = dma_copy(dst, src)
            buffers = buffers_of((*copy.writes, *copy.reads))
            self.found.append(step._replace(instruction=copy, queue=None, buffers=buffers, in_order=False))

    def _engine_starts_at(self, box: _Box) -> bool:
        first, quadrant = box[0], self._space.config.quadrant
        return first % quadrant == 0 and allowed_start(first, box[1] - first, quadrant) is None

    def _written(self, tile: int, number: int) -> np.ndarray:
        """Return which bytes of a tile the steps before `number` have written, bool [partitions, bytes]."""
        written = np.zeros((self._partitions, self._sizes[tile]), bool)
        for use in self._uses[tile]:
            if use >= number:
                break
            for region in self._steps[use].instruction.writes:
                if buffers_of((region,)) == (tile,):
                    rows = slice(region.rows.start, region.rows.stop, region.rows.step)
                    written[rows, _bytes_of(region)] = True
        return written

    def _refusal(self, own: Sequence[int], step: ProgramStep) -> str:
        wanted = ", ".join(f"{self._space.buffers[tile].name} {self._sizes[tile]:,}" for tile in own)
        shared = f", beside {self._shared:,} of tiles that several sections use" if self._shared else ""
        room = f"{self._storage.name} must have room for its tiles, {wanted} bytes of a partition{shared}"
        return f"{step.instruction.name}: {room}, not {int(self._room + self._shared):,} ({step.source})"


def _bytes_of(region: Region) -> slice | np.ndarray:
    """Return the numpy index of the bytes of a region in its buffer."""
    if region.is_dense:
        return slice(*map(offset_of, region.span))
    starts = np.array([offset_of(region.address)])
    for count, step in region.dimensions:
        starts = (starts[:, np.newaxis] + np.arange(count) * step).reshape(-1)
    return (starts[:, np.newaxis] + np.arange(region.size)).reshape(-1)


def _boxes(written: np.ndarray) -> list[_Box]:
    """Return boxes that cover the true elements and no others; one box around them if those would be many."""
    rows = [0, *(np.flatnonzero((written[1:] != written[:-1]).any(1)) + 1).tolist(), len(written)]
    found = []
    for first, end in pairwise(rows):
        edges = np.flatnonzero(np.diff(written[first].astype(np.int8), prepend=0, append=0)).tolist()
        found += [(first, end, low, high) for low, high in zip(edges[::2], edges[1::2], strict=True)]
    if len(found) <= MOST_BOXES:
        return found
    firsts, ends, lows, highs = zip(*found, strict=True)
    return [(min(firsts), max(ends), min(lows), max(highs))]
