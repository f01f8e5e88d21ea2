"""Instructions in their places, and the records that they become: waits for counts turned into semaphores."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from neuroncore_rtl.kernels.program.source import SourceLine
from neuroncore_rtl.spec.isa import Instruction, Record, Update, Wait
from neuroncore_rtl.spec.isa.record import SEMAPHORE_MAX

__all__ = ["Entry", "ProgramStep", "records_of"]


class ProgramStep(NamedTuple):
    """An instruction as it was appended.

    Arguments:
        instruction: its `overlap` does not matter.
        section: that of its section, from 0 on.
        queue: where it starts; None: that of its engine, or of each DMA engine in turn.
        source: the kernel's line.
        buffers: of each region that it writes, and then of each that it reads, the number of the temporary that it is
            in; 0: in none.
        in_order: whether its queue starts it behind all such ones before it, whatever order is chosen.
    """

    instruction: Instruction
    section: int
    queue: int | None
    source: SourceLine
    buffers: tuple[int, ...]
    in_order: bool = False

    @property
    def touched(self) -> list[int]:
        """Numbers of the temporaries, ascending, so that a program is laid out in one way."""
        return sorted({*self.buffers} - {0})


@dataclass(kw_only=True)
class Entry:
    """An instruction in its place.

    Arguments:
        position: its number in the program.
        section: that of its section, from 0 on.
        queue: where it starts.
        lane, number: where it completes, and its number there; of a NOP None, and 0.
        instruction: with `overlap` as the instructions before it allow.
        waits: lanes, and how many instructions of each must have completed before it starts.
        source: the kernel's line that appended it, or what a NOP is for.
        buffers: as of its step; a NOP has none.
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
    """Return the record of every entry of a program.

    Arguments:
        entries: in program order.
        semaphores: those that each section may count on, from the first one on. One serves a lane until it has counted
            to its maximum.

    Raises:
        ValueError: if there are too few of them.
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
    """Return the semaphore and its value for each lane and count that is waited for."""
    sections = {(entry.lane, entry.number + 1): entry.section for entry in entries}
    awaited = {wait for entry in entries for wait in entry.waits}
    places, section, lane, value = {}, None, None, 0
    for wait in sorted(awaited, key=lambda wait: (sections[wait], *wait)):
        if sections[wait] != section:
            section, lane, free = sections[wait], None, iter(semaphores)
        if wait[0] != lane or value == SEMAPHORE_MAX:
            lane, semaphore, value = wait[0], next(free, None), 0
            if semaphore is None:
                needed = f"{sum(sections[one] == section for one in awaited):,} instructions that are waited for"
                raise ValueError(f"semaphores must be more than {len(semaphores)} for {needed}")
        value += 1
        places[wait] = semaphore, value
    return places
