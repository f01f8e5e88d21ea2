"""What instructions must wait for, so that running them at the same time has the result of one after the other.

Instructions stand in program order, each in a queue that starts its own in order. They complete in lanes: within a lane
in order, too. Two instructions conflict if one writes what the other touches; then the later one must start after the
earlier one has completed. Most conflicts need no wait of their own: they follow from waits that the queue has already
done, or from what the instruction that it waits for had itself waited for. So every queue, and every instruction when
it completes, has a *clock*: of each lane, how many instructions have then completed for certain.
"""

from dataclasses import dataclass, field

import numpy as np

from neuroncore_rtl.kernels.program.footprint import overlap
from neuroncore_rtl.spec.isa import Instruction, Region, Storage

__all__ = ["Order"]

EVERYTHING = np.iinfo(np.int64).max
"""More than any number of instructions."""


@dataclass
class Order:
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
        self._live = _Live()

    def conflicts(self, queue: int, instruction: Instruction, ordered: tuple[int, ...] = ()) -> dict[int, int]:
        """Return what a queue's next instruction must wait for, by lane: how many must have completed.

        Arguments:
            queue: its number.
            instruction: it.
            ordered: lanes whose conflicts the engine itself keeps in order.
        """
        known = self._known[queue].copy()
        known[list(ordered)] = EVERYTHING
        after = self._live.last(instruction.reads, known, written=True)
        for lane, number in self._live.last(instruction.writes, known, written=False).items():
            after[lane] = max(after.get(lane, -1), number)
        return self.reduced({lane: number + 1 for lane, number in after.items()})

    def reads_unfinished(self, queue: int, lane: int, instruction: Instruction) -> bool:
        """Return whether a queue's next instruction reads what one of a lane writes that may not have completed."""
        known = np.full(self.lanes, EVERYTHING)
        known[lane] = self._known[queue][lane]
        return bool(self._live.last(instruction.reads, known, written=True))

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
        self._live = _Live()

    def settle(self, queue: int, lane: int) -> None:
        """Note that a queue's next instruction starts after all of a lane so far."""
        self._known[queue][lane] = self.counts[lane]

    def add(self, queue: int, lane: int, instruction: Instruction, implied: tuple[int, ...] = ()) -> int:
        """Add a queue's next instruction; return its number in its lane.

        Arguments:
            queue, lane: where it starts and completes.
            instruction: it.
            implied: lanes of which all so far have completed when it has.
        """
        number = self.counts[lane]
        clock = self._known[queue].copy()
        clock[lane] = number + 1
        for other in implied:
            clock[other] = self.counts[other]
        self._clocks[lane].append(clock)
        self.counts[lane] += 1
        self._live.add(lane, number, instruction)
        return number


class _Live:
    """Regions with which a later instruction can conflict.

    A write hides what it covers: who conflicts with that also conflicts with the write, which came after it.
    """

    def __init__(self):
        self._reads = {storage: _Regions() for storage in Storage}
        self._writes = {storage: _Regions() for storage in Storage}

    def last(self, regions: tuple[Region, ...], known: np.ndarray, *, written: bool) -> dict[int, int]:
        """Return by lane the number of the last instruction that touches one of `regions`.

        Arguments:
            regions: where to look.
            known: of each lane, how many do not matter.
            written: only what was written.
        """
        found: dict[int, int] = {}
        for region in regions:
            for tables in (self._writes,) if written else (self._writes, self._reads):
                tables[region.storage].find(region, known, found)
        return found

    def add(self, lane: int, number: int, instruction: Instruction) -> None:
        """Add what an instruction touches."""
        for region in instruction.writes:
            self._writes[region.storage].hide(region)
            self._reads[region.storage].hide(region)
        for region in instruction.reads:
            # A lane's reads complete in order, so the last one speaks for all.
            self._reads[region.storage].hide(region, lane)
            self._reads[region.storage].add(lane, number, region)
        for region in instruction.writes:
            self._writes[region.storage].add(lane, number, region)


class _Regions:
    """Regions of a storage with their boxes in a table, to search quickly."""

    LANE, NUMBER, FIRST, END, LOW, HIGH = range(6)

    def __init__(self):
        self._regions: list[Region | None] = []
        self._table = np.zeros((16, 6), np.int64)
        self._free: list[int] = []

    def find(self, region: Region, known: np.ndarray, found: dict[int, int]) -> None:
        """Put into `found` the numbers of later instructions that touch `region`, by lane."""
        (low, high), rows = region.span, region.rows
        table = self._table[: len(self._regions)]
        near = (table[:, self.LOW] < high) & (table[:, self.HIGH] > low)
        near &= (table[:, self.FIRST] <= rows[-1]) & (table[:, self.END] > rows[0])
        near &= table[:, self.NUMBER] >= known[table[:, self.LANE]]
        places = np.flatnonzero(near)
        for place in places[np.argsort(-table[places, self.NUMBER], kind="stable")].tolist():
            lane, number = table[place, : self.FIRST].tolist()
            if number > found.get(lane, -1) and overlap(self._regions[place], region):
                found[lane] = number

    def add(self, lane: int, number: int, region: Region) -> None:
        """Add a region of an instruction."""
        if not self._free:
            self._free.append(len(self._regions))
            self._regions.append(None)
        place = self._free.pop()
        if place == len(self._table):
            self._table = np.concatenate((self._table, np.zeros_like(self._table)))
        self._regions[place] = region
        self._table[place] = lane, number, region.rows[0], region.rows[-1] + 1, *region.span

    def hide(self, region: Region, lane: int | None = None) -> None:
        """Remove what `region` covers, of one lane or of all."""
        (low, high), rows = region.span, region.rows
        table = self._table[: len(self._regions)]
        covered = (table[:, self.LOW] >= low) & (table[:, self.HIGH] <= high)
        covered &= (table[:, self.FIRST] >= rows[0]) & (table[:, self.END] <= rows[-1] + 1)
        covered &= table[:, self.HIGH] > 0
        if lane is not None:
            covered &= table[:, self.LANE] == lane
        whole = region.is_dense and rows.step == 1
        for place in np.flatnonzero(covered).tolist():
            if whole or self._regions[place].place == region.place:
                self._table[place] = 0  # an empty box, which nothing meets
                self._free.append(place)
