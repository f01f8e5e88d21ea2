from collections.abc import Callable
from itertools import product
from typing import NamedTuple

import numpy as np
import pytest

from neuroncore_rtl.golden import arith
from neuroncore_rtl.hdl.arith import divide, pack, power
from neuroncore_rtl.hdl.arith.divide import Fp32Divider
from neuroncore_rtl.hdl.arith.power import Fp32Power
from neuroncore_rtl.run.harness.player import PlayedUnit
from neuroncore_rtl.run.sim.simulation import SIMULATORS
from neuroncore_rtl.spec.power import LOGARITHM
from neuroncore_rtl.tb.stimulus.alu_cases import divide_cases, power_cases, remainder_cases
from neuroncore_rtl.tb.stimulus.one_bit import bits_apart, lone_bits, lone_powers
from tests.hdl.arith.units import play
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
REMAINDERS = {"verilator": 20_000, "icarus": 500}
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


def play_pairs(unit, a: np.ndarray, b: np.ndarray, sim: str, **inputs) -> np.ndarray:
    fields = {"a": a, "b": b} | {name: np.broadcast_to(np.uint32(value), a.shape) for name, value in inputs.items()}
    remainder = bool(np.any(inputs.get("remainder", 0)))
    results, unknown = play(PlayedUnit(unit, tuple(fields), **timing_of(unit, remainder)), fields, sim)
    assert len(results) == len(a) and not len(unknown)
    return results


@pytest.mark.parametrize(
    ("name", "sim"),
    slow_if(lambda name, sim: sim == "icarus" and name != "fmod", product(UNITS, SIMULATORS)),
    indirect=["sim"],
)
def test_results_are_those_of_golden(rng, name, sim):
    unit = UNITS[name]
    a, b = unit.cases(rng, unit.count[sim])
    if sim == "verilator":
        a, b = np.concatenate([(a, b), hard_cases("divide")], axis=1)
    np.testing.assert_array_equal(play_pairs(unit.kind(), a, b, sim, **unit.inputs), on_words(unit.golden, a, b))
    assert len(a) >= unit.count[sim]


def test_alternating_quotients_and_remainders_where_one_bit_decides(rng):
    pairs = [lone_bits(), bits_apart(), divide_cases(rng, FEW), remainder_cases(rng, FEW)]
    a, b = (np.concatenate(side) for side in zip(*pairs, strict=True))
    remainder, floored = rng.integers(0, 2, (2, len(a)), np.uint32)
    golden = arith.divide_fp32, arith.divide_fp32, arith.fmod_fp32, arith.mod_fp32
    expected = np.choose(2 * remainder + floored, [on_words(function, a, b) for function in golden])
    found = play_pairs(Fp32Divider(), a, b, "verilator", remainder=remainder, floored=floored)
    np.testing.assert_array_equal(found, expected)


def test_one_bit_decides_a_power():
    a, b = lone_powers()
    assert len(a) > 5_000
    np.testing.assert_array_equal(play_pairs(Fp32Power(), a, b, "verilator"), on_words(arith.power_fp32, a, b))


def test_a_divider_without_the_remainder_is_detected(rng, monkeypatch):
    monkeypatch.setattr(divide, "pack_fp32", lambda m, quotient, field, inexact: pack.pack_fp32(m, quotient, field))
    a, b = divide_cases(rng, FEW)
    wrong = play_pairs(Fp32Divider(), a, b, "icarus") != on_words(arith.divide_fp32, a, b)
    assert 0 < wrong.sum() < len(a)


@pytest.mark.parametrize("floored", (0, 1))
def test_a_remainder_that_ends_too_early_is_detected(rng, monkeypatch, floored):
    monkeypatch.setattr(divide, "_DIGIT_BITS", 2)
    a, b = remainder_cases(rng, 200)
    golden = arith.mod_fp32 if floored else arith.fmod_fp32
    wrong = play_pairs(Fp32Divider(), a, b, "icarus", remainder=1, floored=floored) != on_words(golden, a, b)
    assert 0 < wrong.sum() < len(a)


def test_a_wrong_word_of_a_table_is_detected_in_the_results_of_its_row(rng, monkeypatch):
    table = power._table

    def with_a_wrong_word(m, words, row, name):
        wrong = 37 if words is LOGARITHM else None
        return table(m, [word ^ (number == wrong) << 24 for number, word in enumerate(words)], row, name)

    monkeypatch.setattr(power, "_table", with_a_wrong_word)
    a, b = power_cases(rng, FEW)
    wrong = play_pairs(Fp32Power(), a, b, "icarus") != on_words(arith.power_fp32, a, b)
    normal = (a & 0x7F800000) != 0
    assert wrong.any() and set(a[wrong & normal] >> 17 & 0x3F) == {37}


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
