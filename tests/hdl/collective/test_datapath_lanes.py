# amaranth: UnusedElaboratable=no

"""The lanes against golden: every reduction in every format, and rounding to BF16 in both ways."""

import numpy as np
import pytest
from amaranth import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.golden.arith import random_words, round_fp32, round_stochastic
from neuroncore_rtl.golden.vector import alu
from neuroncore_rtl.hdl.collective.lanes import ReduceLane
from neuroncore_rtl.hdl.collective.rounding import RoundingLane
from neuroncore_rtl.spec.formats import BF16, FP32
from neuroncore_rtl.spec.isa.alu import AluOp
from neuroncore_rtl.spec.isa.collective import ReduceOp
from neuroncore_rtl.tb.stimulus.alu_cases import alu_cases
from neuroncore_rtl.tb.stimulus.operands import round_cases
from tests.hdl.arith.units import PlayedUnit, differences, faulty_wire

SEED = 20260613
COUNT = {"verilator": 10_000, "icarus": 200}
"""Cases of each reduction and format."""

OPERATION = {ReduceOp.SUM: AluOp.ADD, ReduceOp.MAX: AluOp.MAX, ReduceOp.MIN: AluOp.MIN}
REDUCE_PORTS = ("op", "integer", "copy", "a", "b")


class PlayedReduceLane(ReduceLane):
    """A lane with its latency as other units say it."""

    latency = ReduceLane.LATENCY


class PlayedRoundingLane(wiring.Component):
    """A lane whose inputs all come at once."""

    latency = RoundingLane.RANDOM_LATENCY

    index: In(32)
    seed: In(32)
    stream: In(32)
    value: In(32)
    stochastic: In(1)
    out: Out(16)

    def elaborate(self, platform):
        m = Module()
        m.submodules.lane = lane = RoundingLane()
        value, stochastic = self.value, self.stochastic
        for stage in range(self.latency):
            late_value, late_stochastic = Signal(32, name=f"value{stage}"), Signal(name=f"stochastic{stage}")
            m.d.sync += [late_value.eq(value), late_stochastic.eq(stochastic)]
            value, stochastic = late_value, late_stochastic
        m.d.comb += [getattr(lane, name).eq(getattr(self, name)) for name in ("index", "seed", "stream")]
        m.d.comb += [lane.value.eq(value), lane.stochastic.eq(stochastic), self.out.eq(lane.out)]
        return m


def reductions(count: int):
    """Return cases of the reducing lane in random order, and their results by golden."""
    rng = np.random.default_rng(SEED)
    parts = []
    for op, operation in OPERATION.items():
        for integer in (0, 1):
            a, b = alu_cases(rng, count)
            parts.append((np.full(count, op), np.full(count, integer), np.zeros(count), a, b,
                          alu(operation, a, b, bool(integer))))  # fmt: skip
    a, b = alu_cases(rng, count)
    parts.append((rng.integers(3, size=count), rng.integers(2, size=count), np.ones(count), a, b, a))
    order = rng.permutation(count * len(parts))
    *operands, expected = (np.concatenate(column).astype(np.uint32)[order] for column in zip(*parts, strict=True))
    return dict(zip(REDUCE_PORTS, operands, strict=True)), expected


def roundings(count: int):
    """Return cases of the rounding lane, and their results by golden."""
    rng = np.random.default_rng(SEED)
    seed, stream = (int(n) for n in rng.integers(1 << 32, size=2))
    stochastic = rng.integers(2, size=count)
    index = rng.choice([0, 1, (1 << 32) - 1, 1 << 31], count)
    index = np.where(rng.random(count) < 0.1, index, rng.integers(1 << 32, size=count))
    # A share of them are where stochastic rounding turns.
    value = round_cases(rng, BF16, "rne", count)[0]
    turn = (1 << 16) - (random_words(seed, stream, index) >> 16).astype(np.int64) - rng.integers(2, size=count)
    turn = value & 0xFFFF0000 | np.clip(turn, 0, 0xFFFF).astype(np.uint32)
    value = np.where(rng.random(count) < 0.3, turn, value).astype(np.uint32)
    expected = np.where(stochastic == 1, round_stochastic(value, BF16, seed, stream, index), round_fp32(value, BF16))
    fields = {"index": index, "seed": np.full(count, seed), "stream": np.full(count, stream), "value": value}
    fields = {name: values.astype(np.uint32) for name, values in (fields | {"stochastic": stochastic}).items()}
    return fields, expected.astype(np.uint32)


def wrong(lane, fields, expected, sim, mutate=None):
    """Return the numbers of the cases in which a lane's result is another one."""
    return differences(PlayedUnit(lane(), tuple(fields)), fields, expected, sim, mutate)


LANES = [(PlayedReduceLane, reductions, 1), (PlayedRoundingLane, roundings, 5)]


@pytest.mark.parametrize(("lane", "cases", "factor"), LANES)
def test_results_are_those_of_golden(lane, cases, factor, sim):
    fields, expected = cases(factor * COUNT[sim])
    found = wrong(lane, fields, expected, sim)
    print(f"{len(expected)} {cases.__name__} on {sim}")
    assert [{name: hex(values[n]) for name, values in fields.items()} for n in found[:5]] == []


FAULTS = {
    "NaN taken for a number": ("unordered", "1'h0", "op", {ReduceOp.MAX, ReduceOp.MIN}),
    "negative taken for large": ("below", "a_key < b_key", "op", {ReduceOp.MAX, ReduceOp.MIN}),
    "floats added as integers": ("sums", "1'h0", "op", {ReduceOp.SUM}),
    "ties away from zero": ("addend", "stochastic ? {} : 16'h8000", "stochastic", {0}),
    "cut": ("addend", "stochastic ? 16'h0000 : {}", "stochastic", {1}),
}
"""A wire, what it is instead, and the field by whose value the wrong cases are known."""


@pytest.mark.parametrize(("wire", "expression", "field", "values"), FAULTS.values(), ids=FAULTS)
def test_a_broken_lane_is_noticed(wire, expression, field, values):
    lane, cases, _ = LANES[field == "stochastic"]
    fields, expected = cases(1000 if field == "stochastic" else 60)
    found = wrong(lane, fields, expected, "icarus", faulty_wire(wire, expression))
    assert set(fields[field][found].tolist()) == values


ONE, TWO, NAN, INF, NEGATIVE = 0x3F800000, 0x40000000, FP32.nan, 0x7F800000, 1 << 31
KNOWN = [
    ("SUM", ONE, ONE, TWO, 0x7F000000),
    ("SUM", INF, INF | NEGATIVE, NAN, 0x7F000000),
    ("SUM", 0x7FFFFFFF, 1, NAN, 0x80000000),
    ("SUM", 1, 0x80000001, 0, 0x80000002),
    ("MAX", 0, NEGATIVE, 0, 0),
    ("MAX", NEGATIVE, 0, 0, 0),
    ("MAX", 0xFFFFFFFF, ONE, NAN, ONE),
    ("MIN", 0, NEGATIVE, NEGATIVE, NEGATIVE),
    ("MIN", 0x7F800001, ONE, NAN, ONE),
    ("MIN", 0xBF800000, 0xC0000000, 0xC0000000, 0xBF800000),
]
"""Reduction, a, b, result in FP32, result in INT32."""


def test_known_reductions(sim):
    cases = [(ReduceOp[op], integer, 0, a, b) for op, a, b, *_ in KNOWN for integer in (0, 1)]
    fields = dict(zip(REDUCE_PORTS, np.array(cases, np.uint32).T, strict=True))
    expected = np.array([results for *_, fp32, int32 in KNOWN for results in (fp32, int32)], np.uint32)
    assert wrong(PlayedReduceLane, fields, expected, sim).tolist() == []
