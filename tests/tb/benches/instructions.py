"""What the tests of the vector and the scalar engine share: one build for all of them, and comparisons."""

import numpy as np

from neuroncore_rtl.spec.config import PRESETS, Config
from neuroncore_rtl.tb.benches.instructions import Differences
from neuroncore_rtl.tb.check.execution import expected_memories
from neuroncore_rtl.tb.harness.elementwise import design, run_program
from neuroncore_rtl.tb.sim import simulation
from neuroncore_rtl.tb.stimulus.elementwise_programs import Choices, random_program

__all__ = ["IMAGE", "SHARED", "SMALLEST", "both_engines", "check", "smallest"]

SHARED = PRESETS["tiny"]
"""The machine of the one build for Verilator; a test of its own machine costs half a minute."""

SMALLEST = Config(rows=2, columns=2)
"""The machine for Icarus, whose cycles are dear."""

IMAGE = 1 << 13
"""Bytes of a partition that programs on `SMALLEST` use."""


def both_engines() -> simulation.Build:
    """Return the build of `SHARED` with both engines."""
    return simulation.build(design(SHARED))


def smallest(engines: tuple[str, ...] = ("vector",)) -> simulation.Build:
    """Return an Icarus build of `SMALLEST`."""
    return simulation.build(design(SMALLEST, engines), "icarus")


def check(
    built: simulation.Build, config: Config, count: int, choices: Choices, *, stall: int, seed: int, size: int = 1 << 15
):
    """Run a random program, and compare every byte with golden.

    Arguments:
        built, config: the build, and the machine in it.
        count, choices, seed: of `random_program`.
        stall: of `run_program`.
        size: bytes of a partition that the program uses.

    Returns:
        The program, its outcome, and the bytes that it changed.
    """
    print(f"seed {seed}, {count} instructions, stall {stall}")
    program = random_program(np.random.default_rng(seed), config, count, choices, bytes_per_partition=size)
    expected = expected_memories(program.instructions, program.sbuf, program.psum, config)
    outcome = run_program(built, program.records, program.sbuf, program.psum, config, stall=stall, seed=seed)
    differences = Differences(program, outcome, expected, config)
    assert outcome.errors == {"vector": None, "scalar": None}
    assert not differences.places, "\n".join(differences.lines())
    assert sum(outcome.retired.values()) == count
    print(f"{differences.compared} bytes compared, {differences.changed} changed, {outcome.cycles} cycles")
    assert differences.changed > 0
    return program, outcome, differences.changed
