"""Races: instructions that overlapped in time and accessed the same bytes, at least one of them a write.

Without a semaphore between them the result may still be right by chance, so races are found from the cycles of issue
and retirement, not from the contents of memory.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from neuroncore_rtl.run.check.touches import Touch, touches_of
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.isa import RECORD_BYTES, Instruction, Record, queue_name

__all__ = ["Execution", "Race", "TouchTable", "find_races", "race_events"]


@dataclass(frozen=True)
class Execution:
    """An executed record: index `queue` and name `name` of its queue, and its HBM `address`."""

    queue: int
    address: int
    issued: int
    retired: int
    instruction: Instruction
    name: str

    def __str__(self) -> str:
        where = f"{self.name}, record {self.address:#x}, cycles {self.issued} to {self.retired}"
        return f"{self.instruction.name} ({where})"


@dataclass(frozen=True)
class Race:
    """Two executed records, in the order of issue, with one access of each; the two accesses share a byte."""

    first: Execution
    second: Execution
    touches: tuple[Touch, Touch]

    def __str__(self) -> str:
        parts = []
        for event, touch in zip((self.first, self.second), self.touches, strict=True):
            parts.append(f"{event} {'writes' if touch.writes else 'reads'} {touch.name}")
        storage = self.touches[0].storage
        one, other = (touch.box[1:] for touch in self.touches)
        (row, low), (last, high) = (map(pick, one[n::2], other[n::2]) for n, pick in ((0, max), (1, min)))
        place = f"partitions {row} to {last - 1}, " if storage.name != "HBM" else ""
        return f"{parts[0]}; {parts[1]}: {storage.name} {place}bytes {low} to {high - 1}"


def race_events(trace: Iterable[tuple[int, int, int, int]], hbm: np.ndarray, config: Config) -> list[Execution]:
    """Return the executions of a trace for `find_races`.

    An entry of `trace` is the queue of a record, its HBM address, and its cycles of issue and retirement; `hbm`
    contains the records.
    """

    @cache
    def instruction(address: int) -> Instruction:
        return Record.decode(hbm[address : address + RECORD_BYTES].tobytes(), config).instruction

    return [
        Execution(queue, address, issued, retired, instruction(address), queue_name(queue, config))
        for queue, address, issued, retired in trace
    ]


def find_races(events: Sequence[Execution], config: Config) -> list[Race]:
    """Return the races of a run, at most one per pair of events.

    An engine orders the records of its queue, but a record with `overlap` may start before an earlier record of its
    queue has written its results, unless a record without `overlap` lies between the two.
    """
    events = sorted(events, key=lambda event: event.issued)
    table = TouchTable([event.instruction for event in events], config)
    issued = np.array([event.issued for event in events])
    queues = np.array([event.queue for event in events])
    overlap = np.array([bool(i.overlap) for i in table.instructions], bool)
    races = []
    for number, event in enumerate(events):
        later = np.arange(number + 1, np.searchsorted(issued, event.retired))
        others = later[queues[later] != event.queue]
        own = later[queues[later] == event.queue]
        overlapping = own[: int(overlap[own].cumprod().sum())]
        found = table.conflicts(number, others) + table.conflicts(number, overlapping, only_true=True)
        races += [Race(event, events[other], touches) for other, touches in found]
    return races


class TouchTable:
    """Memory accesses of a list of legal instructions; bounding boxes in arrays make the search for conflicts fast."""

    def __init__(self, instructions: Sequence[Instruction], config: Config):
        self.instructions = instructions
        known = {i: touches_of(i, config) for i in set(instructions)}
        self._touches = [touch for i in instructions for touch in known[i]]
        counts = [len(known[i]) for i in instructions]
        self._begins = np.concatenate(([0], np.cumsum(counts, dtype=np.int64)))
        self._owners = np.repeat(np.arange(len(instructions)), counts)
        self._boxes = np.array([touch.box for touch in self._touches], np.int64).reshape(-1, 5).T
        self._writes = np.array([touch.writes for touch in self._touches], bool)

    def conflicts(
        self, number: int, others: np.ndarray, only_true: bool = False
    ) -> list[tuple[int, tuple[Touch, Touch]]]:
        """Return the indices of instructions that conflict with instruction `number`, and both accesses, its own first.

        Conflicting accesses share a byte, and at least one of them writes. `others` are the ascending indices of the
        instructions to compare it with, all lower than `number`, or all higher. With `only_true` only true dependences
        are found: the later instruction reads a byte that the earlier one writes.
        """
        if not len(others):
            return []
        first = others[0]
        allowed = np.zeros(others[-1] + 1 - first, bool)
        allowed[others - first] = True
        near = slice(self._begins[first], self._begins[others[-1] + 1])
        owners, boxes, writes = self._owners[near], self._boxes[:, near], self._writes[near]
        found = {}
        for touch in self._touches[self._begins[number] : self._begins[number + 1]]:
            storage, partition, partition_end, low, high = touch.box
            meets = allowed[owners - first] & (boxes[0] == storage) & (boxes[3] < high) & (boxes[4] > low)
            meets &= (boxes[1] < partition_end) & (boxes[2] > partition)
            if only_true:
                meets &= (writes != touch.writes) & (touch.writes == (number < first))
            else:
                meets &= writes | touch.writes
            for place in np.flatnonzero(meets):
                other = self._touches[near.start + place]
                if int(owners[place]) not in found and touch.meets(other):
                    found[int(owners[place])] = touch, other
        return sorted(found.items(), key=lambda item: item[0])
