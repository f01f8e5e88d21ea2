"""Repeated results: an instruction that repeats an earlier one is removed, and the earlier result is read instead."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from neuroncore_rtl.kernels.program.allocator import Allocator, buffer_of, buffers_of, offset_of
from neuroncore_rtl.kernels.program.entries import ProgramStep
from neuroncore_rtl.kernels.program.instructions import NEUTRAL_BIAS
from neuroncore_rtl.kernels.program.operands import operand_word
from neuroncore_rtl.spec.functions import function_named
from neuroncore_rtl.spec.isa import Opcode, Storage

__all__ = ["without_repeats"]

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
    """Return the numbers of the ACTIVATEs whose running sums the next one continues: they do more than to write dst."""
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
