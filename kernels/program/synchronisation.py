"""Synchronisation: turns instructions in program order into records with a queue and the semaphores that they wait for.

Each instruction starts when what it conflicts with has completed; everything else runs at the same time. The order is
worked out from the bytes that instructions touch (:mod:`kernels.program.dependence`) and held by semaphores:

* An instruction that another one waits for adds 1 to a semaphore of its lane when it completes; the other one waits for
  the count. The tensor queue has two lanes, as a LoadStationary may complete before the MultiplyMoving before it; every
  other queue is one lane. A semaphore that has counted to its maximum is followed by a fresh one.
* A record has room for two waits. What is left over goes to the record before it in its queue if that has room, else to
  a NOP between the two.
* Within the vector and the scalar queue the engine keeps the order; reading what an earlier instruction still writes
  is kept from by not setting `overlap`.
"""

from itertools import cycle

from neuroncore_rtl.kernels.program.dependence import Dependences
from neuroncore_rtl.kernels.program.entries import Entry, ProgramStep
from neuroncore_rtl.kernels.program.liveness import reaches
from neuroncore_rtl.kernels.program.source import SourceLine
from neuroncore_rtl.spec import isa
from neuroncore_rtl.spec.config import Config

__all__ = ["Synchronisation"]

MULTIPLIES, LOADS = 0, 1
"""Lanes of the tensor queue; that of queue q > 0 is q + 1."""

MOST_WAITS = 2


class Synchronisation:
    """The entries of a program as it is laid out, on the addresses that instructions have in the end.

    Arguments:
        config: the machine's parameters.

    Attributes:
        entries: instructions and NOPs, in program order.
    """

    def __init__(self, config: Config):
        self.entries: list[Entry] = []
        queues = isa.queue_count(config)
        self._queues = {engine: isa.queues_of(engine, config) for engine in isa.Engine}
        self._order = Dependences(lanes=queues + 1, queues=queues)
        self._last: list[Entry | None] = [None] * queues
        self._section = 0
        self._source: SourceLine | None = None
        self._turns = cycle(self._queues[isa.Engine.DMA])
        self._positions: list[list[int]] = [[] for _ in range(queues + 1)]

    def append(self, step: ProgramStep) -> None:
        """Append an instruction to its queue, on its addresses; sections come in their order."""
        if step.section != self._section:
            self._order.finish()
        self._section, self._source = step.section, step.source
        instruction = step.instruction
        queue = self._queue(instruction) if step.queue is None else step.queue
        lane = queue + 1 if queue else instruction.lane
        assert lane is not None  # of the tensor queue each instruction has one
        # The engine keeps the order of its own instructions; the two lanes of the tensor queue have no memory in common
        # that either writes.
        ordered = (MULTIPLIES, LOADS) if queue == 0 else (lane,)
        reads, writes = reaches(instruction.reads), reaches(instruction.writes)
        waits = self._waits(queue, self._fit(queue, self._order.conflicts(queue, reads, writes, ordered)))
        if instruction.overlap is not None:
            # What it waits for elsewhere may itself have waited for what it reads.
            independent = not self._order.reads_unfinished(queue, lane, reads)
            if not independent:
                self._order.settle(queue, lane)
            instruction = instruction.overlapping(independent)
        # A MultiplyMoving uses the weights of the last LoadStationary, so that one and those before it are done.
        implied = (LOADS,) if lane == MULTIPLIES else ()
        number = self._order.add(queue, lane, reads, writes, implied)
        self._positions[lane].append(len(self.entries))
        self._add(instruction, queue, waits, lane, number, step.buffers)

    def _queue(self, instruction: isa.Instruction) -> int:
        queues = self._queues[instruction.engine]
        return next(self._turns) if len(queues) > 1 else queues[0]

    def _fit(self, queue: int, waits: dict[int, int]) -> dict[int, int]:
        """Make sure of what a queue's next instruction must wait for; return what it has to wait for itself."""
        before = self._last[queue]
        while len(waits) > MOST_WAITS and before is not None and len(before.waits) < MOST_WAITS:
            # No record may wait for one that comes after it in the program, or queues could wait for each other.
            early = [lane for lane, count in waits.items() if self._positions[lane][count - 1] < before.position]
            if not early:
                break
            before.waits += self._waits(queue, {early[0]: waits.pop(early[0])})
        while len(waits) > MOST_WAITS:
            lanes = list(waits)[:MOST_WAITS]
            self._add(isa.Nop(), queue, self._waits(queue, {lane: waits.pop(lane) for lane in lanes}))
        return waits

    def _waits(self, queue: int, waits: dict[int, int]) -> list[tuple[int, int]]:
        """Let a queue wait; return the waits as an entry has them."""
        for lane, count in waits.items():
            self._order.wait(queue, lane, count)
        return [*waits.items()]

    def _add(
        self,
        instruction: isa.Instruction,
        queue: int,
        waits: list[tuple[int, int]],
        lane: int | None = None,
        number: int = 0,
        buffers: tuple[int, ...] = (),
    ) -> None:
        assert self._source is not None
        entry = Entry(
            position=len(self.entries),
            section=self._section,
            queue=queue,
            lane=lane,
            number=number,
            instruction=instruction,
            waits=waits,
            source=self._source,
            buffers=buffers,
        )
        self.entries.append(entry)
        self._last[queue] = entry
