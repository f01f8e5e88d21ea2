"""Loaded tiles, and longer rows for their loads.

Consecutive loads of adjacent columns become one: all DMA engines together start one row in `Config.packet_interval`
cycles, so that shorter rows than HBM can move in this time are slow (docs/silicon.md).
"""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from neuroncore_rtl.kernels.program.allocator import Allocator, buffer_of, buffers_of, offset_of
from neuroncore_rtl.kernels.program.entries import ProgramStep
from neuroncore_rtl.spec.isa import Storage

__all__ = ["LoadedTile", "loaded_tiles", "merged_loads"]


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


def merged_loads(steps: Sequence[ProgramStep], space: Allocator) -> list[ProgramStep]:
    """Return the steps with consecutive loads of adjacent columns merged, and their tiles as parts of one.

    A row grows until HBM needs `Config.packet_interval` for it.
    """
    most = space.config.packet_interval * space.config.hbm_rate
    groups: list[tuple[LoadedTile, list[int]]] = []
    for buffer, tile in loaded_tiles(steps, space).items():
        if tile.last - tile.first + 1 != len(tile.loads):
            continue
        wide = _side_by_side(groups[-1][0], tile, most) if groups else None
        if wide and groups[-1][0].size % space.buffers[buffer].alignment == 0:
            groups[-1] = wide, [*groups[-1][1], buffer]
        else:
            groups.append((tile, [buffer]))
    parts: dict[int, int] = {}  # address in the wide tile, by buffer
    wide_loads: dict[int, Any] = {}  # by number; None if an earlier load has the columns
    for tile, buffers in groups:
        if len(buffers) > 1:
            start = end = space.temporary(Storage.SBUF, space.buffers[buffers[0]].name, tile.size)
            for buffer in buffers:
                parts[buffer] = end
                end += space.buffers[buffer].size
            wide_loads |= dict.fromkeys(range(tile.first, tile.last + 1))
            wide_loads |= {tile.first + n: replace(one, dst=one.dst.at(start)) for n, one in enumerate(tile.loads)}

    def place(storage: Storage, address: int) -> int:
        buffer = 0 if storage == Storage.HBM else buffer_of(address)
        return parts[buffer] + offset_of(address) if buffer in parts else address

    found = []
    for number, step in enumerate(steps):
        if not parts.keys().isdisjoint(step.buffers):
            moved = wide_loads[number] if number in wide_loads else step.instruction.moved(place)
            if moved is None:
                continue
            step = step._replace(instruction=moved, buffers=buffers_of((*moved.writes, *moved.reads)))
        found.append(step)
    return found


def _side_by_side(left: LoadedTile, right: LoadedTile, most: int) -> LoadedTile | None:
    """Return two tiles as one; None if their loads are not consecutive, or not of adjacent columns, or of long rows."""
    if (left.section, left.last + 1, len(left.loads)) != (right.section, right.first, len(right.loads)):
        return None
    loads = []
    for one, two in zip(left.loads, right.loads, strict=True):
        if len(one.shape) != 2:
            return None
        rows, columns = one.shape
        row = columns * one.src.format.bits // 8
        next_columns = replace(one, src=one.src.at(one.src.address + row), shape=(rows, two.shape[-1]))
        whole = columns * one.dst.format.bits // 8 == left.size
        if next_columns != two or (one.src.steps[-1], one.dst.steps[-1]) != (1, 1) or not whole or row >= most:
            return None
        loads.append(replace(one, shape=(rows, columns + two.shape[-1])))
    return LoadedTile(left.section, tuple(loads), left.size + right.size, left.first, right.last)
