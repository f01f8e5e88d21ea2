"""Unordered conflicts of a program: pairs of instructions that touch the same bytes, one writing, in no fixed order.

A simulation shows races only between instructions that happened to overlap (`run.check.races`); this analysis
covers every execution of a program. A lane is a stream of records that complete in order: the instructions of a queue;
but the tensor queue has two lanes, as a LoadStationary may complete before an earlier MultiplyMoving, and the NOPs of a
queue are a separate lane. Each record has a vector clock: for each lane, how many of its records have certainly
completed when this record starts.

A wait on a semaphore shows that records of another lane have completed. If the semaphore must reach a value, and all
additions of the other lanes together are less, then the first records of the lane that add the difference have
completed. A semaphore that a record sets or decrements shows nothing. The controller must change no semaphore.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from neuroncore_rtl.run.check.races import Execution, Race, TouchTable
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.isa import Instruction, Record, UpdateOp, queue_name

__all__ = ["find_unordered"]

MULTIPLIES, LOADS = 0, 1  # lanes of the tensor queue; queue q > 0 has lane q + 1, and the lanes of NOPs follow


def find_unordered(program: Sequence[tuple[int, int, Record]], config: Config) -> list[Race]:
    """Return the unordered conflicts of a program of (queue, HBM address, record), in any legal order of execution."""
    events = [
        Execution(queue, address, n, n + 1, record.instruction, queue_name(queue, config))
        for n, (queue, address, record) in enumerate(program)
    ]
    table = TouchTable([event.instruction for event in events], config)
    clocks = _Clocks([(queue, record) for queue, _, record in program])
    found = []
    for number, event in enumerate(events):
        unfinished = np.flatnonzero(clocks.numbers[:number] >= clocks.starts[number][clocks.lanes[:number]])
        conflicts = table.conflicts(number, unfinished[clocks.queues[unfinished] != event.queue])
        if event.instruction.overlap:
            same = unfinished[clocks.queues[unfinished] == event.queue]
            conflicts += table.conflicts(number, same, only_true=True)
        found += [Race(events[other], event, touches[::-1]) for other, touches in conflicts]
    return found


@dataclass
class _Adders:
    """Additions to a semaphore, by lane: the sum of the lane's additions after each one, and the record that adds."""

    sums: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    is_counter: bool = True

    def add(self, lane: int, value: int, record: int) -> None:
        before = self.sums.setdefault(lane, [])
        before.append(((before[-1][0] if before else 0) + value, record))

    def certain(self, value: int) -> list[int]:
        """Return the last record of each lane that must have completed when the semaphore is at least `value`."""
        total = sum(sums[-1][0] for sums in self.sums.values())
        lasts = []
        for sums in self.sums.values():
            needed = value - (total - sums[-1][0])
            place = bisect_left(sums, (needed, 0))
            if self.is_counter and needed > 0 and place < len(sums):
                lasts.append(sums[place][1])
        return lasts


class _Clocks:
    """Vector clocks of a program: queue and record, in a legal order of execution.

    `queues`, `lanes` and `numbers` have the queue, the lane and the index in the lane of each record; `starts` has the
    clocks at its start, [records, lanes].
    """

    def __init__(self, program: Sequence[tuple[int, Record]]):
        self.queues = np.array([queue for queue, _ in program], np.int64)
        most = max(self.queues, default=0)
        self.lanes = np.array([_lane(queue, record.instruction, most) for queue, record in program], np.int64)
        self.numbers = np.zeros(len(program), np.int64)
        self.starts = np.zeros((len(program), max(self.lanes, default=0) + 1), np.int64)
        self._ends = np.zeros_like(self.starts)  # clocks at the completion of the records
        self._adders = self._find_adders(program)
        started, ended = {}, {}  # the last record of each queue, and of each lane
        for place, ((queue, record), lane) in enumerate(zip(program, self.lanes, strict=True)):
            start, end = self.starts[place], self._ends[place]
            if queue in started:
                np.maximum(start, self.starts[started[queue]], out=start)
            if lane in ended and record.instruction.in_turn:
                np.maximum(start, self._ends[ended[lane]], out=start)
            for wait in record.waits:
                for other in self._adders[wait.semaphore].certain(wait.value):
                    np.maximum(start, self._ends[other], out=start)
            np.maximum(end, start, out=end)
            # A MultiplyMoving depends on the last LoadStationary.
            for before in {lane, LOADS} if lane == MULTIPLIES else {lane}:
                if before in ended:
                    np.maximum(end, self._ends[ended[before]], out=end)
            self.numbers[place] = end[lane]
            end[lane] += 1
            started[queue] = ended[lane] = place

    def _find_adders(self, program: Sequence[tuple[int, Record]]) -> dict[int, _Adders]:
        adders = defaultdict(_Adders)
        for place, (_, record) in enumerate(program):
            for update in record.updates:
                if update.op == UpdateOp.ADD:
                    adders[update.semaphore].add(int(self.lanes[place]), update.value, place)
                else:
                    adders[update.semaphore].is_counter = False
        return adders


def _lane(queue: int, instruction: Instruction, most: int) -> int:
    """Return the index of an instruction's lane; `most` is the index of the last queue."""
    if instruction.lane is None:
        return most + 2 + queue
    return queue + 1 if queue else instruction.lane
