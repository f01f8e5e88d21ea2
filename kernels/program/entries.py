"""Instructions in their places, and the records that they become: waits for counts turned into semaphores."""

from collections.abc import Sequence
from dataclasses import dataclass

from neuroncore_rtl.spec.isa import Instruction, Record, Update, Wait
from neuroncore_rtl.spec.isa.record import SEMAPHORE_MAX

__all__ = ["Entry", "records_of"]


@dataclass(kw_only=True)
class Entry:
    """An instruction in its place.

    Arguments:
        position: its number in the program.
        section: that of its section, from 0 on.
        queue: where it starts.
        lane, number: where it completes, and its number there.
        instruction: with `overlap` as the instructions before it allow.
        waits: lanes, and how many instructions of each must have completed before it starts.
    """

    position: int
    section: int
    queue: int
    lane: int
    number: int
    instruction: Instruction
    waits: list[tuple[int, int]]


def records_of(entries: Sequence[Entry], semaphores: range) -> list[Record]:
    """Return the record of every entry of a program.

    Arguments:
        entries: in program order.
        semaphores: those that may be used. One serves a lane in a section until it has counted to its maximum.

    Raises:
        ValueError: if there are too few of them.
    """
    sections = {(entry.lane, entry.number + 1): entry.section for entry in entries}
    awaited = sorted({wait for entry in entries for wait in entry.waits})
    free, places, last = iter(semaphores), {}, (None, None, SEMAPHORE_MAX)
    for lane, count in awaited:
        user = lane, sections[lane, count]
        known, semaphore, value = last
        if user != known or value == SEMAPHORE_MAX:
            semaphore, value = next(free, None), 0
            if semaphore is None:
                needed = f"{len(awaited):,} instructions that are waited for"
                raise ValueError(f"semaphores must be more than {len(semaphores)} for {needed}")
        last = user, semaphore, value + 1
        places[lane, count] = semaphore, value + 1
    return [
        Record(
            instruction=entry.instruction,
            waits=tuple(Wait(*places[wait]) for wait in entry.waits),
            updates=tuple(Update(places[done][0]) for done in [(entry.lane, entry.number + 1)] if done in places),
        )
        for entry in entries
    ]
