from itertools import pairwise

import numpy as np
import pytest

from neuroncore_rtl.run.harness.engines.tensor import TensorDevice, TensorWork
from neuroncore_rtl.run.harness.run import run_device
from neuroncore_rtl.spec.config import PRESETS, Config
from neuroncore_rtl.spec.formats import FP32, MATMUL_FORMATS
from neuroncore_rtl.spec.isa import LoadStationary, MultiplyMoving
from neuroncore_rtl.tb.stimulus.tensor_programs import random_tensor_program
from tests.hdl.simulation import slow_if

INSTRUCTIONS = {"verilator": 600, "icarus": 30}
LONGEST = {"verilator": None, "icarus": 12}
"""Maximum number of moving columns; Icarus runs a few hundred cycles per second."""

TINY = PRESETS["tiny"]

CONFIGS = {
    "verilator": (
        TINY,
        Config(rows=2, columns=3, mac_latency=5, add_latency=7, edge_latency=3, port_latency=1),
        Config(rows=2, columns=2, mac_latency=1, add_latency=1),
        Config(rows=3, columns=5, mac_latency=3, add_latency=4, edge_latency=2),
        Config(rows=9, columns=3, mac_latency=5, add_latency=3, psum_words=32),
        Config(rows=2, columns=33, mac_latency=2, add_latency=2),
        Config(rows=12, columns=16, mac_latency=4, add_latency=2),
        Config(rows=3, columns=5, mac_latency=5, significand_bits=8),
    ),
    "icarus": (
        Config(rows=2, columns=2, mac_latency=4, add_latency=1),
        Config(rows=3, columns=5, mac_latency=1, add_latency=3),
    ),
}
"""Configurations by simulator: every pipeline depth, and arrays with narrower last blocks; each needs a build."""

QUICK = {"verilator": 2, "icarus": 1}
"""Number of configurations outside the slow set."""

MACHINES = [(sim, config) for sim, configs in CONFIGS.items() for config in configs]
SHAPE = "{0.rows}x{0.columns}-mac{0.mac_latency}-add{0.add_latency}-bits{0.significand_bits}"


@pytest.mark.parametrize(
    ("sim", "config"),
    slow_if(lambda sim, config: config not in CONFIGS[sim][: QUICK[sim]], MACHINES),
    indirect=["sim"],
    ids=lambda value: value if isinstance(value, str) else SHAPE.format(value),
)
def test_random_programs_have_the_results_of_golden(sim, config):
    compared = stalled = 0
    for seed, stall in enumerate((0, 60, 200), start=1):
        program, expected = random_tensor_program(np.random.default_rng(seed), config, INSTRUCTIONS[sim], LONGEST[sim])
        outcome = run_device(TensorDevice(config=config), TensorWork(program=program, stall=stall, seed=seed), sim=sim)
        nans, written = ((expected & 0x7FFFFFFF) > 0x7F800000).sum(), (expected != 0).sum()
        print(f"seed {seed}, stall {stall}: {written} of {expected.size} words are not zero, {nans} are NaN")
        np.testing.assert_array_equal(outcome.memories["psum"], expected)
        assert nans < written / 2
        assert written > expected.size / 4
        assert (outcome.counters["wait_operand"] > 0) == (stall > 0)
        compared += expected.size
        stalled += outcome.counters["wait_psum"]
    assert compared > 0 and stalled > 0


def test_random_program_is_the_same_for_the_same_seed():
    (first, words), (second, again) = (random_tensor_program(np.random.default_rng(7), TINY, 200) for _ in range(2))
    assert first.steps == second.steps
    np.testing.assert_array_equal(first.moving, second.moving)
    np.testing.assert_array_equal(words, again)


def test_random_programs_cover_all_fields():
    program, _ = random_tensor_program(np.random.default_rng(1), Config(rows=12, columns=16), INSTRUCTIONS["verilator"])
    instructions = [step.instruction for step in program.steps]
    loads, moves = ([one for one in instructions if isinstance(one, kind)] for kind in (LoadStationary, MultiplyMoving))
    for own in (loads, moves):
        assert {one.format for one in own} == set(MATMUL_FORMATS)
        assert {one.half for one in own if one.format is FP32} == {0, 1}
        assert {one.row for one in own} == {0, 4, 8} and {one.column for one in own} == {0, 4, 8, 12}
        assert {one.k for one in own if one.row} == {1, 2, 3, 4}
        assert max(one.m for one in own if one.column) == 8 and max(one.m for one in own) == 16
    assert {one.psum // 512 for one in moves} == set(range(8))
    assert {one.accumulate for one in moves} == {one.transpose for one in moves} == {False, True}
    assert min(one.n for one in moves) == 1 and max(one.n for one in moves) > 100
    assert min(one.stride for one in moves) == 0
    pairs = list(pairwise(instructions))
    assert any(isinstance(a, LoadStationary) and isinstance(b, LoadStationary) for a, b in pairs)
    moved = [(a, b) for a, b in pairs if isinstance(a, MultiplyMoving) and isinstance(b, MultiplyMoving)]
    assert any(b.accumulate for a, b in moved if a.psum == b.psum and a.n == b.n == 1)
    loaded, apart = None, {"row": 0, "column": 0}
    for one in instructions:
        loaded = one if isinstance(one, LoadStationary) else loaded
        for name in apart:
            apart[name] += getattr(one, name) != getattr(loaded, name)
    assert min(apart.values()) > 5
