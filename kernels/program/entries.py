"""Instructions before and after scheduling, without those that repeat others, and as records with semaphores."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from neuroncore_rtl.kernels.program.allocator import Allocator, buffer_of, buffers_of, offset_of
from neuroncore_rtl.kernels.program.instructions import NEUTRAL_BIAS
from neuroncore_rtl.kernels.program.operands import operand_word
from neuroncore_rtl.kernels.program.source import SourceLine
from neuroncore_rtl.spec.functions import function_named
from neuroncore_rtl.spec.isa import Instruction, Opcode, Record, Storage, Update, Wait
from neuroncore_rtl.spec.isa.record import SEMAPHORE_MAX

__all__ = ["Entry", "ProgramStep", "records_of", "without_repeats"]


class ProgramStep(NamedTuple):
    """Instruction in the form and order in which a kernel appended it.

    The instruction's `overlap` is ignored. `queue` None is the queue of the engine, or for a copy any DMA queue.
    `source` is the line of the kernel that appended the instruction. `buffers` has the buffer number of each written
    region, then of each read region; 0 for a fixed address. A queue starts its steps with `in_order` in program order.
    """

    instruction: Instruction
    section: int
    queue: int | None
    source: SourceLine
    buffers: tuple[int, ...]
    in_order: bool = False

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


_REMOVABLE = Opcode.TENSOR_TENSOR, Opcode.TENSOR_COPY

_IDENTITY = {
    "function": function_named("identity").code,
    "s0": operand_word("scale", 1.0),
    "s1": operand_word("bias", NEUTRAL_BIAS),
}
"""Fields of a copy on the scalar engine."""


def _of_any_engine(one: Any) -> Any:
    """Return the TENSOR_COPY with the same result for a copy on the scalar engine, any other instruction unchanged."""
    plain = getattr(one, "opcode", None) == Opcode.ACTIVATE and not (one.sum_continue or one.sum_store)
    if not plain or any(getattr(one, name) != value for name, value in _IDENTITY.items()):
        return one
    return replace(one, opcode=Opcode.TENSOR_COPY, **dict.fromkeys(_IDENTITY, 0))


def _continued(steps: Sequence[ProgramStep]) -> set[int]:
    """Return the numbers of the ACTIVATE steps whose running sums the next ACTIVATE continues."""
    found, last = set(), 0
    for number, step in enumerate(steps):
        one: Any = step.instruction
        if getattr(one, "opcode", None) == Opcode.ACTIVATE:
            if one.sum_continue:
                found.add(last)
            last = number
    return found


def without_repeats(steps: Sequence[ProgramStep], space: Allocator) -> list[ProgramStep]:
    """Return the steps without a TENSOR_TENSOR or copy that repeats an earlier one; the earlier result is read instead.

    A kernel may compute the same tile in every turn of a loop, or multiply by weights that must be copied because their
    columns are not adjacent. An instruction repeats an earlier one of its section if all fields but the destination
    are equal, no source was written in between, and no other instruction writes either destination. For copies the
    engine may differ. The earlier tile lives longer.
    """
    writers = Counter(number for step in steps for number in {*buffers_of(step.instruction.writes)})
    versions: Counter[int] = Counter()
    known: dict[tuple, int] = {}  # address of each result
    moves: dict[int, int] = {}  # from the address of a repeated result to that of the earlier one, by buffer

    def place(storage: Storage, address: int) -> int:
        return address + moves.get(buffer_of(address), 0) * (storage != Storage.HBM)

    found: list[ProgramStep] = []
    needed = _continued(steps)
    for number, step in enumerate(steps):
        if not moves.keys().isdisjoint(step.buffers):
            moved = step.instruction.moved(place)
            step = step._replace(instruction=moved, buffers=buffers_of((*moved.writes, *moved.reads)))
        one: Any = step.instruction
        own = buffers_of(one.writes)
        same = _of_any_engine(one)
        removable = getattr(same, "opcode", None) in _REMOVABLE and number not in needed
        if removable and own and own[0] and writers[own[0]] == 1:
            sources = tuple((buffer, versions[buffer]) for buffer in buffers_of(one.reads))
            there = one.dst.at(offset_of(one.dst.address))
            key = step.section, sources, replace(same, dst=there), space.buffers[own[0]].size
            address = known.setdefault(key, one.dst.address)
            if address != one.dst.address:
                moves[own[0]] = address - one.dst.address
                continue
        versions.update(own)
        found.append(step)
    return found
