"""Synchronisation: assigns instructions to queues, and inserts the semaphore waits that their dependences require.

An instruction starts when all instructions that it conflicts with have completed (`kernels.program.dependence`):

* A *lane* is a stream of instructions that complete in order. The tensor queue has two lanes, since a LoadStationary
  may complete before an earlier MultiplyMoving. Every other queue is one lane.
* An awaited instruction adds 1 to a semaphore of its lane when it completes; the later instruction waits for this
  count. After the maximum of a semaphore, the lane continues with the next one.
* A record has two waits. Further waits are moved to the previous record of the queue if that record has a free wait,
  otherwise to a NOP between the two records.
* The engine keeps the order within the vector and the scalar queue. `overlap` is not set if an instruction reads a
  result that an earlier one in its queue may still be writing. On a machine with `Config.result_latency` it waits for
  that one with a semaphore instead, so that it does not wait for all the others.
"""

from itertools import cycle

from neuroncore_rtl.kernels.program.dependence import Dependences
from neuroncore_rtl.kernels.program.entries import Entry, ProgramStep
from neuroncore_rtl.kernels.program.liveness import reaches
from neuroncore_rtl.kernels.source import SourceLine
from neuroncore_rtl.spec import isa
from neuroncore_rtl.spec.config import Config

__all__ = ["Synchronisation"]

MULTIPLIES, LOADS = 0, 1
"""Lanes of the tensor queue; queue q > 0 is lane q + 1."""

MOST_WAITS = 2


class Synchronisation:
    """Insertion of waits: converts the steps of a program, in order, into `entries`, the instructions and NOPs."""

    def __init__(self, config: Config):
        self.entries: list[Entry] = []
        queues = isa.queue_count(config)
        self._queues = {engine: isa.queues_of(engine, config) for engine in isa.Engine}
        self._order = Dependences(lanes=queues + 1, queues=queues)
        self._last: list[Entry | None] = [None] * queues
        self._late = config.result_latency > 0
        self._section = 0
        self._source: SourceLine | None = None
        self._turns = cycle(self._queues[isa.Engine.DMA])
        self._positions: list[list[int]] = [[] for _ in range(queues + 1)]

    def append(self, step: ProgramStep) -> None:
        """Append the entry of an instruction with final addresses; steps must be appended section by section."""
        if step.section != self._section:
            self._order.finish()
        self._section, self._source = step.section, step.source
        instruction = step.instruction
        queue = self._queue(instruction) if step.queue is None else step.queue
        lane = queue + 1 if queue else instruction.lane
        assert lane is not None  # every instruction of the tensor queue has a lane
        # The engine keeps the order of its instructions; the two lanes of the tensor queue write no common memory.
        ordered = (MULTIPLIES, LOADS) if queue == 0 else (lane,)
        reads, writes = reaches(instruction.reads), reaches(instruction.writes)
        late = self._late and instruction.overlap is not None
        conflicts = self._order.conflicts(queue, reads, writes, ordered, reads_wait=late)
        waits = self._waits(queue, self._fit(queue, conflicts))
        if instruction.overlap is not None:
            # The waits just added may imply that the instructions that wrote its sources have completed.
            independent = not self._order.reads_unfinished(queue, lane, reads)
            if not independent:
                self._order.settle(queue, lane)
            instruction = instruction.overlapping(independent)
        # A MultiplyMoving uses the last stationary operand, so all LoadStationary before it have completed.
        implied = (LOADS,) if lane == MULTIPLIES else ()
        number = self._order.add(queue, lane, reads, writes, implied)
        self._positions[lane].append(len(self.entries))
        self._add(instruction, queue, waits, lane, number, step.buffers)

    def _queue(self, instruction: isa.Instruction) -> int:
        queues = self._queues[instruction.engine]
        return next(self._turns) if len(queues) > 1 else queues[0]

    def _fit(self, queue: int, waits: dict[int, int]) -> dict[int, int]:
        """Return at most `MOST_WAITS` of a queue's waits; move the others to earlier records or to new NOPs."""
        before = self._last[queue]
        while len(waits) > MOST_WAITS and before is not None and len(before.waits) < MOST_WAITS:
            # Deadlock freedom: a record may only wait for records before it in program order.
            early = [lane for lane, count in waits.items() if self._positions[lane][count - 1] < before.position]
            if not early:
                break
            before.waits += self._waits(queue, {early[0]: waits.pop(early[0])})
        while len(waits) > MOST_WAITS:
            lanes = list(waits)[:MOST_WAITS]
            self._add(isa.Nop(), queue, self._waits(queue, {lane: waits.pop(lane) for lane in lanes}))
        return waits

    def _waits(self, queue: int, waits: dict[int, int]) -> list[tuple[int, int]]:
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
