"""Dependence analysis: the earlier instructions that each instruction must wait for.

Instructions are given in program order. Each has a queue, which starts its instructions in order, and a *lane*, in
which instructions complete in order. Two instructions conflict if one writes bytes that the other touches; the later
one must then start after the earlier one has completed. Most conflicts need no separate wait: earlier waits of the
queue, or waits of the awaited instruction, imply them. Therefore each queue and each instruction has a vector *clock*:
per lane, the number of instructions that are certain to have completed, before the queue's next instruction or after
this instruction.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from neuroncore_rtl.kernels.program.liveness import LiveRegions, Reach

__all__ = ["Dependences"]

EVERYTHING = sys.maxsize
"""Exceeds any number of instructions."""


@dataclass
class Dependences:
    """Dependence analysis of instructions in program order.

    `counts` has the number of instructions so far in each lane, an in-order stream of an engine.
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
        self,
        queue: int,
        reads: Sequence[Reach],
        writes: Sequence[Reach],
        ordered: tuple[int, ...] = (),
        *,
        reads_wait: bool = False,
    ) -> dict[int, int]:
        """Return the waits of a queue's next instruction: by lane (in-order stream), how many must have completed.

        The lanes `ordered` need no wait, because the engine itself keeps the order of the accesses. With `reads_wait`
        a read of their results needs one.
        """
        known = self._known[queue].tolist()
        before = known.copy()
        for lane in ordered:
            known[lane] = EVERYTHING
        after = self._live.last(reads, before if reads_wait else known, written=True)
        for lane, number in self._live.last(writes, known, written=False).items():
            after[lane] = max(after.get(lane, -1), number)
        return self.drop_implied({lane: number + 1 for lane, number in after.items()})

    def reads_unfinished(self, queue: int, lane: int, reads: Sequence[Reach]) -> bool:
        """Return whether a queue's next instruction reads a result that stream `lane` may not have written yet."""
        known = [EVERYTHING] * self.lanes
        known[lane] = int(self._known[queue][lane])
        return bool(self._live.last(reads, known, written=True))

    def drop_implied(self, waits: dict[int, int]) -> dict[int, int]:
        """Return `waits` without those that are implied, as another awaited instruction completes only after them."""
        clocks = {lane: self._clocks[lane][count - 1] for lane, count in waits.items()}
        return {
            lane: count
            for lane, count in waits.items()
            if not any(clock[lane] >= count for other, clock in clocks.items() if other != lane)
        }

    def wait(self, queue: int, lane: int, count: int) -> None:
        """Record that a queue waits until the first `count` instructions of stream `lane` have completed."""
        np.maximum(self._known[queue], self._clocks[lane][count - 1], out=self._known[queue])

    def finish(self) -> None:
        """Record a barrier: all instructions so far complete before any later one starts."""
        for known in self._known:
            known[:] = self.counts
        self._live = LiveRegions()

    def settle(self, queue: int, lane: int) -> None:
        """Record that a queue's next instruction starts only after all instructions so far of stream `lane`."""
        self._known[queue][lane] = self.counts[lane]

    def add(
        self, queue: int, lane: int, reads: Sequence[Reach], writes: Sequence[Reach], implied: tuple[int, ...] = ()
    ) -> int:
        """Add a queue's next instruction, of the in-order stream `lane`; return its index in this stream.

        When it completes, all earlier instructions in the lanes `implied` have also completed.
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
