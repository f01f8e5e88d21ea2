"""Timing parameters of a vector or scalar instruction."""

from collections.abc import Sequence
from dataclasses import asdict
from math import prod
from typing import NamedTuple

import numpy as np

from neuroncore_rtl.spec import timing
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.costs import SEARCHES, drain, lanes_latency, step_interval, steps_before, steps_behind, used_by
from neuroncore_rtl.spec.isa import Elementwise, Opcode, Storage
from neuroncore_rtl.spec.isa.elementwise import OUTPUTS, transpose_block
from neuroncore_rtl.spec.pacing import paced

__all__ = ["Plan", "plan_of", "tensors_of"]


class Plan(NamedTuple):
    """Timing of an element-wise instruction, which `golden.timing.calendar.steps` schedules step by step.

    Arguments:
        before, behind: number of steps before the first element, and after the last one.
        interval: minimum cycles between steps.
        delay: cycles from a step to the write of its result.
        depth: maximum number of results in flight.
        group: number of elements that give one result.
        silent: number of elements at the beginning that give no result.
        ticks: ticks in a cycle, if the engine is paced, otherwise 0; the other times below are in ticks.
        start, element, readout, least, access: time that the first step takes besides its element, time of an element,
            time after the last element, minimum from the first step to the next instruction's, and time after the last
            step.
    """

    before: int
    behind: int
    interval: int
    delay: int
    depth: int
    group: int
    silent: int
    ticks: int = 0
    start: int = 0
    element: int = 0
    readout: int = 0
    least: int = 0
    access: int = 0


def plan_of(instruction: Elementwise, config: Config) -> Plan:
    """Return the timing parameters of an instruction."""
    silent = prod(instruction.shape) if instruction.opcode in OUTPUTS else 0
    if instruction.opcode == Opcode.TRANSPOSE:
        silent = transpose_block(config)
    pace = paced(instruction, config)
    times = asdict(pace) if pace else {}
    return Plan(
        before=steps_before(instruction),
        behind=steps_behind(instruction, config),
        interval=step_interval(instruction, config),
        delay=drain(instruction, config),
        depth=lanes_latency(instruction, config) + timing.STORE_SLACK[config.port_latency],
        group=prod(instruction.shape[-instruction.axes :]) if instruction.opcode == Opcode.TENSOR_REDUCE else 1,
        silent=silent,
        **times,
    )


def tensors_of(instruction: Elementwise) -> Sequence[np.ndarray]:
    """Return the operands a, b and dst as the arrays that `golden.timing.calendar.begin_steps` expects."""
    used = used_by(instruction) - ({"b"} if instruction.opcode in SEARCHES else set())
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
