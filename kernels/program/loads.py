"""Loaded tiles, and longer rows for their loads.

Loads of adjacent or overlapping columns become one: all DMA engines together start one row in `Config.packet_interval`
cycles, so that shorter rows than HBM can move in this time are slow (docs/rates.md).
"""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from neuroncore_rtl.kernels.program.allocator import GRANULE, Allocator, buffer_of, buffers_of, offset_of
from neuroncore_rtl.kernels.program.entries import ProgramStep
from neuroncore_rtl.spec.isa import Storage

__all__ = ["NEAR", "LoadedTile", "loaded_tiles", "merged_loads"]

NEAR = 64
"""Most steps from a load to the next one that is merged with it: the wide tile lives until its last use."""


class LoadedTile(NamedTuple):
    """Tile that only loads write, from a source that no step writes.

    `loads` have offsets in the tile as destinations, `size` is in bytes of a partition; `first` and `last` are the
    numbers of the first and the last load. Tiles of the same bytes have equal keys.
    """

    section: int
    loads: tuple[Any, ...]
    size: int
    first: int
    last: int

    @property
    def key(self) -> tuple:
        """Section, loads and size."""
        return self[:3]


def loaded_tiles(steps: Sequence[ProgramStep], space: Allocator) -> dict[int, LoadedTile]:
    """Return the loaded tiles by buffer, in the order of their first loads."""
    writers = Counter(number for step in steps for number in {*buffers_of(step.instruction.writes)})
    regions = (region for step in steps for region in step.instruction.writes)
    written = _union(region.span for region in regions if region.storage == Storage.HBM)
    loads: defaultdict[int, list[int]] = defaultdict(list)
    for number, step in enumerate(steps):
        reads, writes = step.instruction.reads, step.instruction.writes
        # A gather also reads its row numbers.
        if len(reads) == len(writes) == 1 and (reads[0].storage, writes[0].storage) == (Storage.HBM, Storage.SBUF):
            low, high = reads[0].span
            before = bisect_left(written, (high,)) - 1
            if before < 0 or written[before][1] <= low:
                loads[step.buffers[0]].append(number)
    found = {}
    for buffer, numbers in loads.items():
        if buffer and len(numbers) == writers[buffer]:
            own: list[Any] = [steps[number].instruction for number in numbers]
            pieces = tuple(replace(one, dst=one.dst.at(offset_of(one.dst.address))) for one in own)
            size = space.buffers[buffer].size
            found[buffer] = LoadedTile(steps[numbers[0]].section, pieces, size, numbers[0], numbers[-1])
    return found


def _union(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the union of spans of addresses, ascending."""
    found: list[tuple[int, int]] = []
    for low, high in sorted(set(spans)):
        if found and low <= found[-1][1]:
            found[-1] = found[-1][0], max(high, found[-1][1])
        else:
            found.append((low, high))
    return found


class _Window(NamedTuple):
    """Contiguous bytes of HBM that fill each partition of a loaded tile; those of the first partition.

    Tiles of the same rows have equal `rows`: their section, and their loads without columns, from byte 0 of HBM.
    """

    rows: tuple[int, tuple[Any, ...]]
    low: int
    high: int


@dataclass
class _Wide:
    """Wide tile: its bytes of the first partition, the numbers of its first and its last load, and its parts.

    `parts` has the tile and its first byte in a partition, by buffer.
    """

    rows: tuple[int, tuple[Any, ...]]
    low: int
    high: int
    first: int
    last: int
    parts: dict[int, tuple[LoadedTile, int]] = field(default_factory=dict)

    def on_chip(self, size: int) -> int:
        """Return the bytes of a partition on chip for bytes in HBM."""
        one = self.rows[1][0]
        return size * one.dst.format.bits // one.src.format.bits

    def takes(self, window: _Window, most: int, aligned: int) -> bool:
        """Return whether the window continues the row, at an address that its instructions accept.

        A row of `most` bytes takes only windows that overlap it by half.
        """
        if not self.low <= window.low <= self.high or self.on_chip(window.low - self.low) % aligned:
            return False
        return self.high - self.low < most or 2 * (window.high - self.high) <= window.high - window.low

    def add(self, buffer: int, tile: LoadedTile, window: _Window) -> None:
        """Add a tile, and extend the row."""
        self.parts[buffer] = tile, self.on_chip(window.low - self.low)
        self.high, self.last = max(self.high, window.high), tile.last


def merged_loads(steps: Sequence[ProgramStep], space: Allocator) -> list[ProgramStep]:
    """Return the steps with one load for tiles of adjacent or overlapping columns, as parts of a wide tile.

    The loads are at most `NEAR` steps apart. A row grows until HBM needs `Config.packet_interval` for it.
    """
    most = space.config.packet_interval * space.config.hbm_rate
    aligned = _alignments(steps, space)
    tiles: list[_Wide] = []
    near: list[_Wide] = []
    for buffer, tile in loaded_tiles(steps, space).items():
        window = _window(tile)
        if window is None:
            continue
        near = [one for one in near if tile.first - one.last <= NEAR]
        same = (one for one in near if one.rows == window.rows and one.takes(window, most, aligned[buffer]))
        wide = next(same, None)
        if wide is None:
            wide = _Wide(*window, tile.first, tile.last)
            tiles.append(wide)
            near.append(wide)
        wide.add(buffer, tile, window)
    places: dict[int, int] = {}  # address in the wide tile, by buffer
    loads: dict[int, Any] = {}  # by number; None if an earlier load has the columns
    for wide in tiles:
        if len(wide.parts) > 1:
            name = space.buffers[next(iter(wide.parts))].name
            start = space.temporary(Storage.SBUF, name, wide.on_chip(wide.high - wide.low))
            for buffer, (tile, offset) in wide.parts.items():
                places[buffer] = start + offset
                loads |= dict.fromkeys(range(tile.first, tile.last + 1))
            for number, one in enumerate(wide.rows[1], wide.first):
                columns = (wide.high - wide.low) * 8 // one.src.format.bits
                src = one.src.at(one.src.address + wide.low)
                loads[number] = replace(one, shape=(one.shape[0], columns), src=src, dst=one.dst.at(start))

    def place(storage: Storage, address: int) -> int:
        buffer = 0 if storage == Storage.HBM else buffer_of(address)
        return places[buffer] + offset_of(address) if buffer in places else address

    found = []
    for number, step in enumerate(steps):
        if not places.keys().isdisjoint(step.buffers):
            moved = loads[number] if number in loads else step.instruction.moved(place)
            if moved is None:
                continue
            step = step._replace(instruction=moved, buffers=buffers_of((*moved.writes, *moved.reads)))
        found.append(step)
    return found


def _window(tile: LoadedTile) -> _Window | None:
    """Return the window of a tile; None if its partitions are not filled from contiguous bytes by consecutive loads."""
    first = tile.loads[0]
    low, columns = first.src.address, first.shape[-1]
    loads = []
    for one in tile.loads:
        row = columns * one.dst.format.bits // 8
        whole = len(one.shape) == 2 and one.shape[-1] == columns and one.dst.address == 0 and row > tile.size - GRANULE
        if not whole or (one.src.steps[-1], one.dst.steps[-1], one.dst.axis) != (1, 1, 0):
            return None
        loads.append(replace(one, shape=(one.shape[0], 0), src=one.src.at(one.src.address - low)))
    if tile.last - tile.first + 1 != len(loads):
        return None
    return _Window((tile.section, tuple(loads)), low, low + columns * first.src.format.bits // 8)


def _alignments(steps: Sequence[ProgramStep], space: Allocator) -> dict[int, int]:
    """Return the bytes of which the address of each buffer must be a multiple for the instructions that access it."""
    found: dict[int, int] = defaultdict(int)
    for step in steps:
        one = step.instruction
        for region, buffer in zip((*one.writes, *one.reads), step.buffers, strict=True):
            if buffer:
                # What writes nothing loads weights, whole groups of columns.
                found[buffer] = max(found[buffer], region.size if one.writes else space.buffers[buffer].alignment)
    return found
