"""Memory pressure: limits how far the list scheduler prefetches.

In program order all buffers fit in memory. A scheduling unit may start early only if, from now to its position in
program order, its buffers always fit beside the live buffers and those of other units that started early. So the oldest
unit always fits.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from neuroncore_rtl.kernels.program.allocation import ON_CHIP
from neuroncore_rtl.kernels.program.allocator import Allocator
from neuroncore_rtl.spec.isa import Storage

__all__ = ["MemoryPressure"]

LEFT, OWN = 0.25, 0.125
"""Fractions of the share of a memory: loads leave the first to results, since an engine that may not allocate a result
early waits for every instruction that it depends on. Early loads may fill the second whatever results have filled,
since results wait for loads."""


class MemoryPressure:
    """Bytes per partition that are live while a section is scheduled.

    At most the share of each memory in `shares` is filled. `buffers` are the buffer numbers of each unit, except those
    in `always`, which are live during the whole program.
    """

    def __init__(
        self,
        buffers: Sequence[Iterable[int]],
        always: Iterable[int],
        space: Allocator,
        shares: Mapping[Storage, float],
    ):
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
        changes: dict[Storage, Any] = {storage: np.zeros(len(buffers) + 1, np.int64) for storage in ON_CHIP}
        for number, (storage, size) in self._sizes.items():
            self._born[first[number]].append(number)
            changes[storage][first[number]] += size
            changes[storage][last[number] + 1] -= size
        self._in_order = {storage: changes[storage].cumsum() for storage in ON_CHIP}
        self._most: dict[Storage, float] = {storage: shares[storage] * len(space.room(storage)) for storage in ON_CHIP}
        for number in always:
            self._most[named[number].storage] -= named[number].size
        self._placed: set[int] = set()
        self._early: set[int] = set()
        self._early_bytes: dict[Storage, int] = dict.fromkeys(ON_CHIP, 0)
        self._loaded: set[int] = set()  # those of the early buffers that loads allocated
        self._loaded_bytes: dict[Storage, int] = dict.fromkeys(ON_CHIP, 0)
        self._farthest = 0

    def needed(self, unit: int) -> bool:
        """Return whether a unit touches a buffer that is not allocated yet."""
        return not self._placed.issuperset(self._buffers[unit])

    def fits(self, unit: int, oldest: int, load: bool) -> bool:
        """Return whether memory suffices to start a unit now; `oldest` is the first unit that has not started."""
        wanted: dict[Storage, int] = dict.fromkeys(ON_CHIP, 0)
        for number in self._buffers[unit]:
            if number not in self._placed:
                storage, size = self._sizes[number]
                wanted[storage] += size
        turns = slice(oldest, max(self._farthest, unit) + 1)
        for storage, size in wanted.items():
            if size:
                most = self._most[storage]
                if load and self._loaded_bytes[storage] + size > OWN * most:
                    most *= 1 - LEFT
                if self._in_order[storage][turns].max() + self._early_bytes[storage] + size > most:
                    return False
        return True

    def take(self, unit: int, oldest: int, load: bool) -> None:
        """Allocate the buffers of a unit that starts; a buffer first used after unit `oldest` counts as early."""
        for number in self._buffers[unit]:
            if number not in self._placed:
                self._placed.add(number)
                if self._first[number] > oldest:
                    storage, size = self._sizes[number]
                    self._early.add(number)
                    self._early_bytes[storage] += size
                    if load:
                        self._loaded.add(number)
                        self._loaded_bytes[storage] += size
                    self._farthest = max(self._farthest, self._first[number])

    def give(self, unit: int) -> None:
        """Free the buffers for which a completed unit is the last user."""
        for number in self._buffers[unit]:
            self._users[number] -= 1
            if not self._users[number]:
                self._in_turn(number)

    def pass_by(self, unit: int) -> None:
        """Record that all units up to `unit` have started: the buffers of `unit` no longer count as early."""
        for number in self._born[unit]:
            self._in_turn(number)

    def _in_turn(self, number: int) -> None:
        if number in self._early:
            self._early.remove(number)
            storage, size = self._sizes[number]
            self._early_bytes[storage] -= size
            if number in self._loaded:
                self._loaded.remove(number)
                self._loaded_bytes[storage] -= size
