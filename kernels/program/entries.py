"""Instructions before and after scheduling, and as records with semaphores."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from neuroncore_rtl.kernels.source import SourceLine
from neuroncore_rtl.spec.isa import Instruction, Record, Update, Wait
from neuroncore_rtl.spec.isa.record import SEMAPHORE_MAX

__all__ = ["Entry", "ProgramStep", "records_of"]


class ProgramStep(NamedTuple):
    """Instruction in the form and order in which a kernel appended it.

    The instruction's `overlap` is ignored. `queue` None is the queue of the engine, or for a copy any DMA queue.
    `source` is the line of the kernel that appended the instruction. `buffers` has the buffer number of each written
    region, then of each read region; 0 for a fixed address. A queue starts its steps with `in_order` in program order.
    `other` is an instruction of another engine with the same result (`kernels.program.engine_selection`).
    """

    instruction: Instruction
    section: int
    queue: int | None
    source: SourceLine
    buffers: tuple[int, ...]
    in_order: bool = False
    other: Instruction | None = None

    @property
    def touched(self) -> list[int]:
        """Buffer numbers of the temporaries that the instruction accesses, ascending for deterministic lowering."""
        return sorted({*self.buffers} - {0})


@dataclass(kw_only=True)
class Entry:
    """Instruction of a queue, in its final position.

    `lane` identifies an in-order stream of an engine, in which instructions complete in order, and `number` is the
    index in this stream, None for a NOP. `overlap` is set by dependence analysis. Each of the `waits` is a lane and the
    number of its instructions that must have completed before this one starts. `source` is the line of the kernel that
    appended the instruction, or for a NOP the next instruction. `buffers` are as in `ProgramStep`; empty for a NOP.
    """

    position: int
    section: int
    queue: int
    lane: int | None
    number: int
    instruction: Instruction
    waits: list[tuple[int, int]]
    source: SourceLine
    buffers: tuple[int, ...] = ()


def records_of(entries: Sequence[Entry], semaphores: range) -> list[Record]:
    """Return the record of every entry of a program; ValueError if there are too few semaphores.

    A semaphore counts the awaited instructions of one lane; when it is at its maximum, the lane continues with the next
    free semaphore. Each section starts again with the first semaphore.
    """
    places = _places(entries, semaphores)
    return [
        Record(
            instruction=entry.instruction,
            waits=tuple(Wait(*places[wait]) for wait in entry.waits),
            updates=tuple(Update(places[done][0]) for done in [(entry.lane, entry.number + 1)] if done in places),
        )
        for entry in entries
    ]


def _places(entries: Sequence[Entry], semaphores: range) -> dict[tuple[int | None, int], tuple[int, int]]:
    sections = {(entry.lane, entry.number + 1): entry.section for entry in entries}
    awaited = {wait for entry in entries for wait in entry.waits}
    places, section, lane, value = {}, None, None, 0
    for wait in sorted(awaited, key=lambda wait: (sections[wait], *wait)):
        if sections[wait] != section:
            section, lane, free = sections[wait], None, iter(semaphores)
        if wait[0] != lane or value == SEMAPHORE_MAX:
            lane, semaphore, value = wait[0], next(free, None), 0
            if semaphore is None:
                needed = f"{sum(sections[one] == section for one in awaited):,} awaited instructions"
                raise ValueError(f"semaphores must be more than {len(semaphores)} for {needed}")
        value += 1
        places[wait] = semaphore, value
    return places
