"""Races of a run: instructions that worked at the same time on the same bytes, though one of them wrote.

Semaphores keep such instructions apart; where a program forgets one, the result may still be right today. So a run is
judged by when its instructions were issued and when they had finished, not by what it left in memory.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from neuroncore_rtl.run.check.touches import Touch, touches_of
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.isa import RECORD_BYTES, Instruction, Record, queue_name

__all__ = ["Execution", "Race", "TouchTable", "find_races", "race_events"]


@dataclass(frozen=True)
class Execution:
    """A record that was executed.

    Arguments:
        queue, address: whose, and where in HBM. name: of the queue.
        issued: the cycle in which the engine took it. retired: in which it had finished.
        instruction: what it said.
    """

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
    """Two executed records, the first of which was issued first, and an access of each, which meet."""

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
    """Return the events of a trace: queue, record's address, cycle of issue and of retirement of each.

    Arguments:
        trace: in any order.
        hbm: uint8 [bytes], with the records.
        config: the machine's parameters.
    """
    known: dict[int, Instruction] = {}
    events = []
    for queue, address, issued, retired in trace:
        if address not in known:
            known[address] = Record.decode(hbm[address : address + RECORD_BYTES].tobytes(), config).instruction
        events.append(Execution(queue, address, issued, retired, known[address], queue_name(queue, config)))
    return events


def find_races(events: Sequence[Execution], config: Config) -> list[Race]:
    """Return the races of a run, one for each pair of events that has any.

    A queue's records follow each other as their engine sees to it; only one with `overlap` may read what an earlier one
    of its queue still writes, unless one without it came between the two.
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
    """What many instructions touch, with the boxes around it in arrays, to search quickly.

    Arguments:
        instructions: legal ones.
        config: the machine's parameters.
    """

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
        """Return who touches what an instruction writes, or writes what it touches, and both accesses, its own first.

        Arguments:
            number: of the instruction.
            others: numbers, ascending, all lower or all higher.
            only_true: count only true dependences: the higher number reads what the lower one writes.
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
