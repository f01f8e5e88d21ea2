"""Dependence analysis: the instructions that each one must wait for, so that the result is that of program order.

Instructions stand in program order, each in a queue that starts its own in order. They complete in lanes: within a lane
in order, too. Two instructions conflict if one writes what the other touches; then the later one must start after the
earlier one has completed. Most conflicts need no wait of their own: they follow from waits that the queue has already
done, or from what the instruction that it waits for had itself waited for. So every queue, and every instruction when
it completes, has a *clock*: of each lane, how many instructions have then completed for certain.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from neuroncore_rtl.kernels.program.liveness import LiveRegions, Reach

__all__ = ["Dependences"]

EVERYTHING = sys.maxsize
"""More than any number of instructions."""


@dataclass
class Dependences:
    """The order of a program under construction.

    Arguments:
        lanes: how many there are.
        queues: how many there are.

    Attributes:
        counts: instructions of each lane so far.
    """

    lanes: int
    queues: int
    counts: list[int] = field(init=False)

    def __post_init__(self):
        self.counts = [0] * self.lanes
        self._known = [np.zeros(self.lanes, np.int64) for _ in range(self.queues)]
        self._clocks: list[list[np.ndarray]] = [[] for _ in range(self.lanes)]
        self._live = LiveRegions()

    def conflicts(
        self, queue: int, reads: Sequence[Reach], writes: Sequence[Reach], ordered: tuple[int, ...] = ()
    ) -> dict[int, int]:
        """Return what a queue's next instruction must wait for, by lane: how many must have completed.

        Arguments:
            queue: its number.
            reads, writes: what the instruction touches.
            ordered: lanes whose conflicts the engine itself keeps in order.
        """
        known = self._known[queue].tolist()
        for lane in ordered:
            known[lane] = EVERYTHING
        after = self._live.last(reads, known, written=True)
        for lane, number in self._live.last(writes, known, written=False).items():
            after[lane] = max(after.get(lane, -1), number)
        return self.reduced({lane: number + 1 for lane, number in after.items()})

    def reads_unfinished(self, queue: int, lane: int, reads: Sequence[Reach]) -> bool:
        """Return whether a queue's next instruction reads what one of a lane writes that may not have completed."""
        known = [EVERYTHING] * self.lanes
        known[lane] = int(self._known[queue][lane])
        return bool(self._live.last(reads, known, written=True))

    def reduced(self, waits: dict[int, int]) -> dict[int, int]:
        """Return the waits without those that follow from others."""
        clocks = {lane: self._clocks[lane][count - 1] for lane, count in waits.items()}
        return {
            lane: count
            for lane, count in waits.items()
            if not any(clock[lane] >= count for other, clock in clocks.items() if other != lane)
        }

    def wait(self, queue: int, lane: int, count: int) -> None:
        """Note that a queue waits until so many of a lane have completed."""
        np.maximum(self._known[queue], self._clocks[lane][count - 1], out=self._known[queue])

    def finish(self) -> None:
        """Note that all instructions so far have completed before the next one of any queue starts."""
        for known in self._known:
            known[:] = self.counts
        self._live = LiveRegions()

    def settle(self, queue: int, lane: int) -> None:
        """Note that a queue's next instruction starts after all of a lane so far."""
        self._known[queue][lane] = self.counts[lane]

    def add(
        self, queue: int, lane: int, reads: Sequence[Reach], writes: Sequence[Reach], implied: tuple[int, ...] = ()
    ) -> int:
        """Add a queue's next instruction; return its number in its lane.

        Arguments:
            queue, lane: where it starts and completes.
            reads, writes: what it touches.
            implied: lanes of which all so far have completed when it has.
        """
        number = self.counts[lane]
        clock = self._known[queue].copy()
        clock[lane] = number + 1
        for other in implied:
            clock[other] = self.counts[other]
        self._clocks[lane].append(clock)
        self.counts[lane] += 1
        self._live.add(lane, number, reads, writes)
        return number
