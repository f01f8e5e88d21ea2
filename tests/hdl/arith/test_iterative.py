from collections.abc import Callable
from itertools import product
from typing import NamedTuple

import numpy as np
import pytest

from neuroncore_rtl.golden import arith
from neuroncore_rtl.hdl.arith.divide import Fp32Divider
from neuroncore_rtl.hdl.arith.power import Fp32Power
from neuroncore_rtl.run.harness.player import PlayedUnit
from neuroncore_rtl.run.sim.simulation import SIMULATORS
from neuroncore_rtl.tb.stimulus.alu_cases import divide_cases, power_cases, remainder_cases
from neuroncore_rtl.tb.stimulus.one_bit import bits_apart, lone_bits, lone_powers
from tests.hdl.arith.units import assert_same
from tests.hdl.simulation import drive, simulated, slow_if
from tests.oracles.hard import hard_cases
from tests.oracles.words import on_words

FEW = 2_000


class Iterative(NamedTuple):
    kind: Callable
    golden: Callable
    cases: Callable
    count: dict[str, int]
    inputs: dict[str, int] = {}
    """Further inputs of the unit."""


MOD, FMOD = {"remainder": 1, "floored": 1}, {"remainder": 1, "floored": 0}
REMAINDERS = {"verilator": 20_000, "icarus": 100}
UNITS = {
    "mod": Iterative(Fp32Divider, arith.mod_fp32, remainder_cases, REMAINDERS, MOD),
    "fmod": Iterative(Fp32Divider, arith.fmod_fp32, remainder_cases, REMAINDERS, FMOD),
    "divide": Iterative(Fp32Divider, arith.divide_fp32, divide_cases, {"verilator": 200_000, "icarus": 3_000}),
    "power": Iterative(Fp32Power, arith.power_fp32, power_cases, {"verilator": 120_000, "icarus": 2_000}),
}


def timing_of(unit, remainder: bool) -> dict[str, int]:
    if remainder:
        return {"latency": unit.REMAINDER_LATENCY, "interval": unit.REMAINDER_INTERVAL}
    return {"latency": unit.LATENCY, "interval": unit.INTERVAL}


def played(kind, a: np.ndarray, b: np.ndarray, **inputs) -> tuple[PlayedUnit, dict[str, np.ndarray]]:
    fields = {"a": a, "b": b} | {name: np.broadcast_to(np.uint32(value), a.shape) for name, value in inputs.items()}
    return PlayedUnit(kind(), tuple(fields), **timing_of(kind, "remainder" in inputs)), fields


@pytest.mark.parametrize(
    ("name", "sim"),
    slow_if(lambda name, sim: sim == "icarus" and name != "fmod", product(UNITS, SIMULATORS)),
    indirect=["sim"],
)
def test_results_are_those_of_golden(rng, name, sim):
    unit = UNITS[name]
    a, b = unit.cases(rng, unit.count[sim])
    if sim == "verilator":
        a, b = np.concatenate([(a, b), hard_cases("divide"), *([lone_powers()] if name == "power" else [])], axis=1)
    assert_same(*played(unit.kind, a, b, **unit.inputs), on_words(unit.golden, a, b), sim)


def test_alternating_quotients_and_remainders_where_one_bit_decides(rng):
    pairs = [lone_bits(), bits_apart(), divide_cases(rng, FEW), remainder_cases(rng, FEW)]
    a, b = (np.concatenate(side) for side in zip(*pairs, strict=True))
    remainder, floored = rng.integers(0, 2, (2, len(a)), np.uint32)
    golden = arith.divide_fp32, arith.divide_fp32, arith.fmod_fp32, arith.mod_fp32
    expected = np.choose(2 * remainder + floored, [on_words(function, a, b) for function in golden])
    assert_same(*played(Fp32Divider, a, b, remainder=remainder, floored=floored), expected, "verilator")


@pytest.mark.parametrize(
    ("kind", "inputs", "cases"),
    [
        (Fp32Divider, MOD, [(0xC0A00000, 0x40400000, 0x3F800000), (0x7F7FFFFF, 0x00000003, 0x00000000)]),
        (Fp32Divider, FMOD, [(0xC0A00000, 0x40400000, 0xC0000000), (0x40F00000, 0xC0000000, 0x3FC00000)]),
        (Fp32Divider, {}, [(0x3F800000, 0x40400000, 0x3EAAAAAB), (0x40C00000, 0xC0000000, 0xC0400000)]),
        (Fp32Power, {}, [(0x40800000, 0x3F000000, 0x40000000), (0x3F800000, 0x7FC00000, 0x3F800000),
                         (0x40400000, 0x40000000, 0x41100000)]),
    ],
)  # fmt: skip
@simulated(lambda kind: kind())
async def test_result_stays_after_the_latency_and_inputs_count_only_at_the_start(ctx, unit, kind, inputs, cases):
    seen, latency = [], timing_of(unit, "remainder" in inputs)["latency"]
    for a, b, _ in cases:
        drive(ctx, unit, start=1, a=a, b=b, **inputs)
        for _ in range(2 * latency):
            seen.append(ctx.get(unit.out))
            await ctx.tick()
            drive(ctx, unit, start=0, a=~b, b=~a, **dict.fromkeys(inputs, 0))
    whole = [0] * latency + [result for *_, result in cases for _ in range(2 * latency)]
    assert seen == whole[: len(seen)]
