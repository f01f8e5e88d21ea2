"""Builds and comparisons for the vector and the scalar engine."""

import numpy as np

from neuroncore_rtl.run.elementwise import Differences, expected_memories, work_of
from neuroncore_rtl.run.harness.engines.elementwise import ElementwiseDevice
from neuroncore_rtl.run.harness.run import run_device
from neuroncore_rtl.spec.config import PRESETS, Config
from neuroncore_rtl.tb.stimulus.elementwise_programs import Choices, random_elementwise_program
from tests.hdl.tensor.engines import faulty

__all__ = ["BOTH", "IMAGE", "SHARED", "SMALLEST", "check_case", "run_broken", "smallest"]

SHARED = PRESETS["tiny"]  # another machine would need another Verilator build, of half a minute

SMALLEST = Config(rows=2, columns=2)  # machine for Icarus, which is slow

IMAGE = 1 << 13

BOTH = ElementwiseDevice(config=SHARED)


def smallest(*engines: str) -> ElementwiseDevice:
    return ElementwiseDevice(config=SMALLEST, engines=engines)


def run_broken(engine: str, shell: dict, choices: Choices, count: int) -> Differences:
    program = random_elementwise_program(np.random.default_rng(3), SMALLEST, count, choices, bytes_per_partition=IMAGE)
    expected = expected_memories(program.instructions, program.sbuf, program.psum, SMALLEST)
    device = faulty(smallest(engine), f"{engine}_engine", **shell)
    outcome = run_device(device, work_of(program, stall=100, seed=3), sim="icarus")
    differences = Differences(program, outcome.memories, expected)
    print(f"{len(differences.places)} of {differences.compared} bytes differ", *differences.lines()[:1])
    return differences


def check_case(device: ElementwiseDevice, count: int, choices: Choices, *, stall, seed, size=1 << 15, sim="verilator"):
    print(f"seed {seed}, {count} instructions, stall {stall}")
    config = device.config
    program = random_elementwise_program(np.random.default_rng(seed), config, count, choices, bytes_per_partition=size)
    expected = expected_memories(program.instructions, program.sbuf, program.psum, config)
    outcome = run_device(device, work_of(program, stall=stall, seed=seed), sim=sim)
    differences = Differences(program, outcome.memories, expected)
    assert not outcome.faults
    assert not differences.places, "\n".join(differences.lines())
    assert sum(part.counters["instructions"] for part in outcome.parts.values()) == count
    print(f"{differences.compared} bytes compared, {differences.changed} changed, {outcome.cycles} cycles")
    assert differences.changed > 0
    return program, outcome, differences.changed
