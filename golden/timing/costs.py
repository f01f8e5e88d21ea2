"""What an instruction of the vector or the scalar engine costs in cycles, when nobody else is at the memories."""

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

import numpy as np

from neuroncore_rtl.spec import timing
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.isa import AluOp, Elementwise, Opcode, Pointer, Storage
from neuroncore_rtl.spec.isa.elementwise import OUTPUTS, VALUES8, transpose_block, uses

__all__ = [
    "Plan", "dependent_period", "drain", "is_slow", "latency", "period", "plan", "step_cycles",
    "step_interval", "tensors",
]  # fmt: skip

_DIVIDER = timing.DIVIDE_LATENCY, timing.DIVIDE_INTERVAL
_UNITS = {AluOp.DIVIDE: _DIVIDER, AluOp.POWER: (timing.POWER_LATENCY, timing.POWER_INTERVAL)}
"""Latency and interval of the iterative units."""

_SEARCHES = (Opcode.FIND_INDEX8, Opcode.MATCH_REPLACE8)

_ENTRY = timing.ELEMENTWISE_CHECKER_LATENCY + timing.SEQUENCER_LATENCY
"""Cycles from an instruction that an idle engine takes to its first read."""


def step_interval(instruction: Elementwise) -> int:
    """Return the least cycles from a step of an instruction to the next, memories aside."""
    first, second = _slow_units(instruction)
    if first and second:
        return first[0] + second[1]
    if first or second:
        return (first or second)[1]
    if instruction.opcode == Opcode.BN_AGGR:
        return timing.SET_INTERVAL
    return timing.SCAN_INTERVAL if instruction.opcode == Opcode.TENSOR_TENSOR_SCAN else 1


def is_slow(instruction: Elementwise) -> bool:
    """Return whether nothing else may be in the lanes."""
    return instruction.opcode == Opcode.BN_AGGR or any(_slow_units(instruction))


def step_cycles(instruction: Elementwise, config: Config) -> int:
    """Return the cycles from the first step of an instruction to that of the next, if nothing else holds it up."""
    interval = step_interval(instruction)
    others = (_loads(instruction) + _results(instruction, config)) * interval
    return others + prod(instruction.shape) * max(interval, _sbuf_reads(instruction))


def period(instruction: Elementwise, config: Config) -> int:
    """Return the cycles from an instruction to the next of its kind, if they overlap."""
    if is_slow(instruction):
        return dependent_period(instruction, config)
    return max(timing.ELEMENTWISE_CHECKER_INTERVAL, step_cycles(instruction, config))


def dependent_period(instruction: Elementwise, config: Config) -> int:
    """Return the cycles from an instruction to the next of its kind, if each waits for the one before to be written."""
    reads = 1 if _results(instruction, config) else max(1, _sbuf_reads(instruction))
    # The last step waits for its reads alone, and nothing for the interval after it.
    return step_cycles(instruction, config) - max(step_interval(instruction), reads) + reads + drain(instruction)


def latency(instruction: Elementwise, config: Config) -> int:
    """Return the cycles from an instruction that an idle engine takes to the pulse that retires it."""
    return _ENTRY + dependent_period(instruction, config)


def drain(instruction: Elementwise) -> int:
    """Return the cycles from the last step of an instruction to the first one that waits for all writes."""
    scalar = instruction.opcode == Opcode.ACTIVATE
    lanes = timing.SCALAR_LANES_LATENCY if scalar else timing.VECTOR_LANES_LATENCY
    units = [_DIVIDER] if instruction.opcode == Opcode.BN_AGGR else filter(None, _slow_units(instruction))
    return timing.READ_LATENCY + lanes + sum(unit[0] - 1 for unit in units) + timing.STORE_LATENCY


def _sbuf_reads(instruction: Elementwise) -> int:
    """Return how many words of SBUF an element takes."""
    tensors = ("a",) if instruction.opcode in _SEARCHES else ("a", "b")
    used = _uses(instruction)
    return sum(name in used and getattr(instruction, name).storage == Storage.SBUF for name in tensors)


def _uses(instruction: Elementwise) -> frozenset[str]:
    return uses({"opcode": instruction.opcode, "sum_store": instruction.sum_store})


def _results(instruction: Elementwise, config: Config) -> int:
    """Return the steps of an instruction after its elements."""
    if instruction.opcode == Opcode.TRANSPOSE:
        return transpose_block(config)
    return OUTPUTS.get(instruction.opcode, int("result" in _uses(instruction)))


def _slow_units(instruction: Elementwise) -> Sequence[tuple[int, int] | None]:
    """Return latency and interval of the iterative unit of op0 and of op1, None where there is none."""
    if instruction.opcode == Opcode.RECIPROCAL:
        return _DIVIDER, None
    used = _uses(instruction)
    return [_UNITS.get(getattr(instruction, name)) if name in used else None for name in ("op0", "op1")]


class Plan(NamedTuple):
    """What :func:`golden.timing.calendar.steps` has to know of an instruction.

    before, behind: steps before the elements, and behind them. interval: least cycles from step to step. delay: cycles
    from a step to its write. depth: results that may be on their way. group: elements of a result. silent: elements
    without one.
    """

    before: int
    behind: int
    interval: int
    delay: int
    depth: int
    group: int
    silent: int


def plan(instruction: Elementwise, config: Config) -> Plan:
    """Return the plan of an instruction."""
    lanes = timing.SCALAR_LANES_LATENCY if instruction.opcode == Opcode.ACTIVATE else timing.VECTOR_LANES_LATENCY
    silent = prod(instruction.shape) if instruction.opcode in OUTPUTS else 0
    if instruction.opcode == Opcode.TRANSPOSE:
        silent = transpose_block(config)
    return Plan(
        before=_loads(instruction),
        behind=_results(instruction, config),
        interval=step_interval(instruction),
        delay=drain(instruction),
        depth=lanes + timing.STORE_SLACK,
        group=prod(instruction.shape[-instruction.axes :]) if instruction.opcode == Opcode.TENSOR_REDUCE else 1,
        silent=silent,
    )


def tensors(instruction: Elementwise) -> Sequence[np.ndarray]:
    """Return of a, b and dst what :func:`golden.timing.calendar.steps` takes."""
    used = _uses(instruction) - ({"b"} if instruction.opcode in _SEARCHES else set())
    return [_access(instruction, name, name in used or name == "dst") for name in ("a", "b", "dst")]


def _access(instruction: Elementwise, name: str, used: bool) -> np.ndarray:
    found, access = np.zeros(7, np.int64), getattr(instruction, name)
    if used and access is not None:
        size = access.format.bits // 8
        found[:3] = 1, access.storage == Storage.PSUM, access.address
        moved = [step * size for step in access.steps]
        if name == "dst" and instruction.opcode == Opcode.TENSOR_REDUCE:
            moved[-instruction.axes :] = [0] * instruction.axes
        found[7 - len(moved) :] = moved
    return found


def _loads(instruction: Elementwise) -> int:
    """Return the steps of an instruction before its elements."""
    loads = sum(isinstance(getattr(instruction, name), Pointer) for name in ("s0", "s1") if name in _uses(instruction))
    return loads + (VALUES8 if instruction.opcode in _SEARCHES else 0)
