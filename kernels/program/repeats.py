"""Removal of repeated instructions and loads: the earlier result is read instead, and its tile lives longer.

A kernel may compute or load the same tile in every turn of a loop, or multiply by weights that must be copied because
their columns are not adjacent.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from heapq import heappop, heappush
from typing import Any

from neuroncore_rtl.kernels.program.allocator import Allocator, buffer_of, buffers_of, offset_of
from neuroncore_rtl.kernels.program.entries import ProgramStep
from neuroncore_rtl.kernels.program.instructions import NEUTRAL_BIAS
from neuroncore_rtl.kernels.program.loads import LoadedTile, loaded_tiles
from neuroncore_rtl.kernels.program.operands import operand_word
from neuroncore_rtl.spec.functions import function_named
from neuroncore_rtl.spec.isa import Opcode, Storage

__all__ = ["KEPT", "without_repeats"]

KEPT = 1 / 2
"""Fraction of SBUF for loaded tiles that are kept until a repeated load (docs/silicon.md)."""

_REMOVABLE = {
    Opcode.TENSOR_COPY, Opcode.TENSOR_TENSOR, Opcode.TENSOR_SCALAR, Opcode.SCALAR_TENSOR_TENSOR, Opcode.TENSOR_REDUCE,
    Opcode.RECIPROCAL,
}  # fmt: skip

_IDENTITY = {
    "function": function_named("identity").code,
    "s0": operand_word("scale", 1.0),
    "s1": operand_word("bias", NEUTRAL_BIAS),
}
"""Fields of a copy on the scalar engine."""


def _of_any_engine(one: Any) -> Any:
    """Return the TENSOR_COPY with the same result for a copy on the scalar engine, any other instruction unchanged."""
    plain = getattr(one, "opcode", None) == Opcode.ACTIVATE and not (one.sum_continue or one.sum_store)
    if not plain or any(getattr(one, name) != value for name, value in _IDENTITY.items()):
        return one
    return replace(one, opcode=Opcode.TENSOR_COPY, **dict.fromkeys(_IDENTITY, 0))


def _continued(steps: Sequence[ProgramStep]) -> set[int]:
    """Return the numbers of the ACTIVATE steps whose running sums the next ACTIVATE continues."""
    found, last = set(), 0
    for number, step in enumerate(steps):
        one: Any = step.instruction
        if getattr(one, "opcode", None) == Opcode.ACTIVATE:
            if one.sum_continue:
                found.add(last)
            last = number
    return found


def without_repeats(
    steps: Sequence[ProgramStep], space: Allocator, share: float = KEPT
) -> tuple[list[ProgramStep], dict[int, int]]:
    """Return the steps without those that repeat an earlier one, and the numbers of both.

    Loaded tiles are kept in at most `share` of SBUF.

    A step repeats an earlier one of its section if all fields but the destination are equal, no source was written in
    between, and no other instruction writes either destination; for copies on chip the engine may differ. The loads of
    a tile repeat those of an earlier tile together.
    """
    writers = Counter(number for step in steps for number in {*buffers_of(step.instruction.writes)})
    tiles = loaded_tiles(steps, space)
    kept = _kept(tiles, share * len(space.room(Storage.SBUF)))
    versions: Counter[int] = Counter()
    known: dict[tuple, tuple[int, int]] = {}  # address and number of each result
    moves: dict[int, int] = {}  # from the address of a repeated result to that of the earlier one, by buffer

    def place(storage: Storage, address: int) -> int:
        return address + moves.get(buffer_of(address), 0) * (storage != Storage.HBM)

    found: list[ProgramStep] = []
    repeats: dict[int, int] = {}
    needed = _continued(steps)
    for number, step in enumerate(steps):
        target = step.buffers[0] if step.instruction.writes else 0
        if target in kept and target in moves:
            repeats[number] = known[tiles[target].key][1]
            continue
        if not moves.keys().isdisjoint(step.buffers):
            moved = step.instruction.moved(place)
            step = step._replace(instruction=moved, buffers=buffers_of((*moved.writes, *moved.reads)))
        one: Any = step.instruction
        own = buffers_of(one.writes)
        same = _of_any_engine(one)
        removable = getattr(same, "opcode", None) in _REMOVABLE and number not in needed
        key = None
        if own and own[0] in tiles:
            tile = tiles[own[0]]
            if number == tile.first:
                key = tile.key
                if own[0] not in kept:
                    known.pop(key, None)
        elif removable and own and own[0] and writers[own[0]] == 1:
            sources = tuple((buffer, versions[buffer]) for buffer in buffers_of(one.reads))
            there = one.dst.at(offset_of(one.dst.address))
            key = step.section, sources, replace(same, dst=there), space.buffers[own[0]].size
        if key is not None:
            address, first = known.setdefault(key, (one.dst.address, number))
            if first != number:
                moves[own[0]], repeats[number] = address - one.dst.address, first
                continue
        versions.update(own)
        found.append(step)
    return found, repeats


def _kept(tiles: Mapping[int, LoadedTile], room: float) -> set[int]:
    """Return the buffers whose tile is kept from an equal one before, at most `room` bytes at a time.

    The tile whose next loads are farthest is given up first (Belady's rule, see `kernels.program.spilling`).
    """
    following: dict[int, int] = {}
    latest: dict[tuple, int] = {}
    for buffer, tile in tiles.items():
        before = latest.get(tile.key)
        if before is not None and tiles[before].last < tile.first:
            following[before] = buffer
        latest[tile.key] = buffer
    found: set[int] = set()
    held: dict[int, int] = {}  # bytes of a tile by the first of its next loads
    farthest: list[int] = []
    filled = 0
    for buffer, tile in tiles.items():
        if tile.first in held:
            filled -= held.pop(tile.first)
            found.add(buffer)
        if buffer in following:
            again = tiles[following[buffer]].first
            held[again] = tile.size
            filled += tile.size
            heappush(farthest, -again)
        while filled > room:
            filled -= held.pop(-heappop(farthest), 0)
    return found
