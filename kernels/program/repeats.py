"""Removal of instructions that combine the same two tensors again: the earlier result is read instead.

A kernel may compute the same tile in every turn of a loop. An instruction repeats an earlier one of its section if all
fields but the destination are equal, no source was written in between, and no other instruction writes either
destination. The earlier tile lives longer.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from neuroncore_rtl.kernels.program.allocator import Allocator, buffer_of, buffers_of, offset_of
from neuroncore_rtl.kernels.program.entries import ProgramStep
from neuroncore_rtl.spec.isa import Opcode, Storage

__all__ = ["without_repeats"]


def without_repeats(steps: Sequence[ProgramStep], space: Allocator) -> list[ProgramStep]:
    """Return the steps without a TENSOR_TENSOR that repeats an earlier one."""
    writers = Counter(number for step in steps for number in {*buffers_of(step.instruction.writes)})
    versions: Counter[int] = Counter()
    known: dict[tuple, int] = {}  # address of each result
    moves: dict[int, int] = {}  # from the address of a repeated result to that of the earlier one, by buffer

    def place(storage: Storage, address: int) -> int:
        return address + moves.get(buffer_of(address), 0) * (storage != Storage.HBM)

    found: list[ProgramStep] = []
    for step in steps:
        if not moves.keys().isdisjoint(step.buffers):
            moved = step.instruction.moved(place)
            step = step._replace(instruction=moved, buffers=buffers_of((*moved.writes, *moved.reads)))
        one: Any = step.instruction
        own = buffers_of(one.writes)
        if getattr(one, "opcode", None) == Opcode.TENSOR_TENSOR and own[0] and writers[own[0]] == 1:
            sources = tuple((number, versions[number]) for number in buffers_of(one.reads))
            there = one.dst.at(offset_of(one.dst.address))
            key = step.section, sources, replace(one, dst=there), space.buffers[own[0]].size
            address = known.setdefault(key, one.dst.address)
            if address != one.dst.address:
                moves[own[0]] = address - one.dst.address
                continue
        versions.update(own)
        found.append(step)
    return found
