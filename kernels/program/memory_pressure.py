"""Memory pressure: how far instructions may be moved up, as far as memory has room for their results.

In program order a program has its places; what is done early takes room beside these. So it may take what the fullest
moment between now and its turn leaves, and whatever has been done early, the oldest instruction always finds room.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from neuroncore_rtl.kernels.program.allocator import Allocator
from neuroncore_rtl.spec.isa import Storage

__all__ = ["MemoryPressure"]

STORAGES = (Storage.SBUF, Storage.PSUM)


class MemoryPressure:
    """The bytes of a partition that buffers take while the units of a section are put in order.

    Arguments:
        buffers: of every unit those that it touches, by their numbers, without those that are there all the time.
        always: the others.
        space: which named them.
        share: of each memory, that may be full.
    """

    def __init__(self, buffers: Sequence[Iterable[int]], always: Iterable[int], space: Allocator, share: float):
        self._buffers = buffers
        named = space.buffers
        first: dict[int, int] = {}
        last: dict[int, int] = {}
        self._users: dict[int, int] = {}
        for unit, touched in enumerate(buffers):
            for number in touched:
                first.setdefault(number, unit)
                last[number] = unit
                self._users[number] = self._users.get(number, 0) + 1
        self._first = first
        self._sizes = {number: (named[number].storage, named[number].size) for number in first}
        self._born: list[list[int]] = [[] for _ in buffers]
        changes: dict[Storage, Any] = {storage: np.zeros(len(buffers) + 1, np.int64) for storage in STORAGES}
        for number, (storage, size) in self._sizes.items():
            self._born[first[number]].append(number)
            changes[storage][first[number]] += size
            changes[storage][last[number] + 1] -= size
        self._in_order = {storage: changes[storage].cumsum() for storage in STORAGES}
        self._most: dict[Storage, float] = {storage: share * len(space.room(storage)) for storage in STORAGES}
        for number in always:
            self._most[named[number].storage] -= named[number].size
        self._placed: set[int] = set()
        self._early: set[int] = set()
        self._early_bytes: dict[Storage, int] = dict.fromkeys(STORAGES, 0)
        self._farthest = 0

    def needed(self, unit: int) -> bool:
        """Return whether a unit touches what has no place yet."""
        return not self._placed.issuperset(self._buffers[unit])

    def fits(self, unit: int, oldest: int) -> bool:
        """Return whether a unit may go before its turn; oldest: the unit whose turn it is."""
        wanted: dict[Storage, int] = dict.fromkeys(STORAGES, 0)
        for number in self._buffers[unit]:
            if number not in self._placed:
                storage, size = self._sizes[number]
                wanted[storage] += size
        turns = slice(oldest, max(self._farthest, unit) + 1)
        return all(
            size == 0 or self._in_order[storage][turns].max() + self._early_bytes[storage] + size <= self._most[storage]
            for storage, size in wanted.items()
        )

    def take(self, unit: int, oldest: int) -> None:
        """Give places to what a unit touches."""
        for number in self._buffers[unit]:
            if number not in self._placed:
                self._placed.add(number)
                if self._first[number] > oldest:
                    self._early.add(number)
                    self._early_bytes[self._sizes[number][0]] += self._sizes[number][1]
                    self._farthest = max(self._farthest, self._first[number])

    def give(self, unit: int) -> None:
        """Note that a unit is over."""
        for number in self._buffers[unit]:
            self._users[number] -= 1
            if not self._users[number]:
                self._in_turn(number)

    def pass_by(self, unit: int) -> None:
        """Note that the turn of a unit is over: what it writes first is not early any more."""
        for number in self._born[unit]:
            self._in_turn(number)

    def _in_turn(self, number: int) -> None:
        if number in self._early:
            self._early.remove(number)
            storage, size = self._sizes[number]
            self._early_bytes[storage] -= size
