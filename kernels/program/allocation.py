"""Allocation of temporaries: each is live from the first instruction that touches it to the last one in program order.

The allocator is next-fit: each search starts where the last one ended. An address is reused as late as possible, so
that the next load to it can be prefetched farthest. If the free ranges become too small, buffers with long lives
are allocated from the end of a memory, apart from the others. If that does not help, all are packed, the largest and
longest first.
"""

from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np

from neuroncore_rtl.kernels.program.allocator import Allocator, Buffer, buffers_of
from neuroncore_rtl.kernels.program.entries import ProgramStep
from neuroncore_rtl.kernels.source import SourceLine
from neuroncore_rtl.spec.isa import Storage

__all__ = ["ON_CHIP", "OutOfMemory", "addresses", "lives", "peak"]


class OutOfMemory(ValueError):
    """No free range of SBUF or PSUM, the `storage`, is large enough for a temporary."""

    def __init__(self, message: str, storage: Storage):
        super().__init__(message)
        self.storage = storage


LONG_LIFE = 16
"""Fraction of the steps beyond which a buffer's life is long: 1 / 16."""

ON_CHIP = (Storage.SBUF, Storage.PSUM)
"""Memories of temporaries."""

_Spans = Mapping[int, tuple[int, int]]
"""First and last step of each buffer's life, by buffer number."""


def addresses(
    steps: Sequence[ProgramStep], space: Allocator, storages: Collection[Storage] = ON_CHIP, packed: bool = True
) -> dict[int, int]:
    """Return the address of every buffer of the given memories that an instruction touches, by buffer number.

    A buffer that several sections touch is live during the whole program, since sections may be skipped or repeated.
    Buffers without room are `packed` if allowed.

    Raises ValueError if a buffer is read before it is written, OutOfMemory if no free range fits a buffer.
    """
    first, last = lives(steps, space.buffers)
    spans: dict[Storage, dict[int, tuple[int, int]]] = {storage: {} for storage in storages}
    for number, start in first.items():
        if (storage := space.buffers[number].storage) in storages:
            one_section = steps[start].section == steps[last[number]].section
            spans[storage][number] = (start, last[number]) if one_section else (0, len(steps))
    sources = {number: steps[start].source for number, start in first.items()}
    found: dict[int, int] = {}
    for storage, own in spans.items():
        found |= _addresses(own, space, storage, sources, len(steps), packed)
    return found


def _addresses(
    spans: _Spans, space: Allocator, storage: Storage, sources: Mapping[int, SourceLine], steps: int, packed: bool
) -> dict[int, int]:
    """Return the addresses of the buffers of one memory."""
    try:
        return _next_fit(spans, space, storage, sources, steps)
    except OutOfMemory:
        pass
    try:
        return _next_fit(spans, space, storage, sources, steps // LONG_LIFE)
    except OutOfMemory:
        if packed and (found := _packed(spans, space, storage)) is not None:
            return found
        raise


def _next_fit(
    spans: _Spans, space: Allocator, storage: Storage, sources: Mapping[int, SourceLine], long: int
) -> dict[int, int]:
    """Return addresses; buffers that live for more than `long` steps are allocated from the end of their memory."""
    born, dying = ({} for _ in range(2))
    for number, (start, end) in spans.items():
        born.setdefault(start, []).append(number)
        dying.setdefault(end, []).append(number)
    ring = _Ring(space.room(storage), space.config.psum_bank)
    found: dict[int, int] = {}
    for step in sorted({*born, *dying}):
        for number in born.get(step, ()):
            buffer, (start, end) = space.buffers[number], spans[number]
            place = ring.take_last(buffer) if end - start > long else ring.take(buffer)
            if place is None:
                live = [other for other in found if spans[other][1] >= step]
                raise OutOfMemory(_no_room(number, live, sources, space), storage)
            found[number] = place
        for number in dying.get(step, ()):
            ring.give(found[number], space.buffers[number].size)
    return found


def _packed(spans: _Spans, space: Allocator, storage: Storage) -> dict[int, int] | None:
    """Return lowest addresses, the buffers being placed in descending order of bytes x steps; None if one has no room.

    After Y. Pisarchyk and J. Lee, "Efficient memory management for deep neural net inference", 2020, which sorts by
    bytes alone.
    """
    found: dict[int, int] = {}
    own = sorted(spans, key=lambda number: space.buffers[number].size * (spans[number][0] - spans[number][1] - 1))
    lives = np.array([spans[number] for number in own], np.int64).reshape(-1, 2)
    places = np.zeros((len(own), 2), np.int64)  # first byte and end of the buffers placed so far
    room = space.room(storage)
    for index, number in enumerate(own):
        start, end = spans[number]
        beside = places[:index][(lives[:index, 0] <= end) & (lives[:index, 1] >= start)]
        buffer, place = space.buffers[number], room.start
        for low, high in sorted(map(tuple, beside.tolist())):
            if _fit(place, buffer, space.config.psum_bank) + buffer.size <= low:
                break
            place = max(place, high)
        place = _fit(place, buffer, space.config.psum_bank)
        if place + buffer.size > room.stop:
            return None
        places[index] = place, place + buffer.size
        found[number] = place
    return found


def lives(steps: Sequence[ProgramStep], buffers: Mapping[int, Buffer]) -> tuple[dict[int, int], dict[int, int]]:
    """Return the first and the last step that touches each buffer; ValueError if it reads before it is written."""
    first, last = {}, {}
    for number, step in enumerate(steps):
        for buffer in step.touched:
            if buffer not in first:
                instruction = step.instruction
                if buffer in buffers_of(instruction.reads):
                    name = buffers[buffer].name
                    raise ValueError(f"{name} must be written before {instruction.name} reads it ({step.source})")
                first[buffer] = number
            last[buffer] = number
    return first, last


def peak(found: dict[int, int], space: Allocator, storage: Storage) -> int:
    """Return the byte address, in a partition, behind the highest buffer of `storage`; `found` is from `addresses`."""
    ends = (at + space.buffers[number].size for number, at in found.items())
    own = (end for end, number in zip(ends, found, strict=True) if space.buffers[number].storage == storage)
    return max(own, default=space.fixed_end(storage))


def _no_room(number: int, live: Iterable[int], sources: Mapping[int, SourceLine], space: Allocator) -> str:
    wanted = space.buffers[number]
    beside = sorted(((space.buffers[other], sources[other]) for other in live), key=lambda one: -one[0].size)
    lines = "".join(f"\n  {buffer.name}: {buffer.size:,} bytes ({source})" for buffer, source in beside)
    total = sum(buffer.size for buffer, _ in beside)
    return (
        f"{wanted.name}: {wanted.storage.name} must have room for {wanted.size:,} bytes of a partition beside "
        f"{total:,} of {len(space.room(wanted.storage)):,} that are live ({sources[number]}):{lines}"
    )


class _Ring:
    """Next-fit allocator for one memory; addresses are bytes within a partition."""

    def __init__(self, room: range, bank: int):
        self._bank = bank
        self._starts, self._ends = [room.start], [room.stop]
        self._next = room.start

    def take(self, buffer: Buffer) -> int | None:
        here = bisect_left(self._starts, self._next)
        # The range that contains `_next` starts before it.
        around = [*range(max(0, here - 1), len(self._starts)), *range(here)]
        for turn, piece in enumerate(around):
            least = max(self._next, self._starts[piece]) if turn == 0 else self._starts[piece]
            place = _fit(least, buffer, self._bank)
            if place + buffer.size <= self._ends[piece]:
                self._remove(piece, place, place + buffer.size)
                self._next = place + buffer.size
                return place
        return None

    def take_last(self, buffer: Buffer) -> int | None:
        """Return the last place of a buffer."""
        for piece in reversed(range(len(self._starts))):
            alignment = self._bank if buffer.storage == Storage.PSUM else buffer.alignment
            place = (self._ends[piece] - buffer.size) // alignment * alignment
            if place >= self._starts[piece]:
                self._remove(piece, place, place + buffer.size)
                return place
        return None

    def give(self, start: int, size: int) -> None:
        end, piece = start + size, bisect_left(self._starts, start)
        if piece < len(self._starts) and self._starts[piece] == end:
            end = self._ends[piece]
            del self._starts[piece], self._ends[piece]
        if piece and self._ends[piece - 1] == start:
            self._ends[piece - 1] = end
        else:
            self._starts.insert(piece, start)
            self._ends.insert(piece, end)

    def _remove(self, piece: int, start: int, end: int) -> None:
        kept = [(self._starts[piece], start), (end, self._ends[piece])]
        kept = [(low, high) for low, high in kept if low < high]
        self._starts[piece : piece + 1] = [low for low, _ in kept]
        self._ends[piece : piece + 1] = [high for _, high in kept]


def _fit(address: int, buffer: Buffer, bank: int) -> int:
    """Return the lowest legal start address of a buffer from `address` on.

    In PSUM, a buffer that extends over several banks must start at the start of a bank.
    """
    whole = buffer.storage == Storage.PSUM and buffer.size > bank
    alignment = bank if whole else buffer.alignment
    place = -(-address // alignment) * alignment
    if buffer.storage == Storage.PSUM and place % bank + buffer.size > bank and not whole:
        place = -(-place // bank) * bank
    return place
