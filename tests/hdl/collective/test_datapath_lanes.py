# amaranth: UnusedElaboratable=no

from itertools import product

import numpy as np
import pytest

from neuroncore_rtl.golden.arith import random_words, round_fp32, round_stochastic
from neuroncore_rtl.golden.vector import alu
from neuroncore_rtl.hdl.collective.lanes import ReduceLane
from neuroncore_rtl.hdl.collective.rounding import RoundingLane
from neuroncore_rtl.run.harness.player import PlayedUnit
from neuroncore_rtl.spec.formats import BF16
from neuroncore_rtl.spec.isa.alu import AluOp
from neuroncore_rtl.spec.isa.collective import ReduceOp
from neuroncore_rtl.tb.stimulus.alu_cases import alu_cases
from neuroncore_rtl.tb.stimulus.operands import round_cases
from tests.hdl.arith.units import assert_same, shuffled

SEED = 20260613
OPERATION = {ReduceOp.SUM: AluOp.ADD, ReduceOp.MAX: AluOp.MAX, ReduceOp.MIN: AluOp.MIN}
REDUCE_PORTS = ("op", "integer", "copy", "a", "b")


def reductions(count: int):
    rng = np.random.default_rng(SEED)
    parts = []
    for (op, operation), integer in product(OPERATION.items(), (0, 1)):
        a, b = alu_cases(rng, count)
        parts.append((op, integer, 0, a, b, alu(operation, a, b, bool(integer))))
    a, b = alu_cases(rng, count)
    parts.append((rng.integers(3, size=count), rng.integers(2, size=count), 1, a, b, a))
    return shuffled(rng, parts, REDUCE_PORTS)


def roundings(count: int):
    rng = np.random.default_rng(SEED)
    seed, stream = (int(n) for n in rng.integers(1 << 32, size=2))
    stochastic = rng.integers(2, size=count)
    index = rng.choice([0, 1, (1 << 32) - 1, 1 << 31], count)
    index = np.where(rng.random(count) < 0.1, index, rng.integers(1 << 32, size=count))
    value = round_cases(rng, BF16, "rne", count)[0]
    turn = (1 << 16) - (random_words(seed, stream, index) >> 16).astype(np.int64) - rng.integers(2, size=count)
    turn = value & 0xFFFF0000 | np.clip(turn, 0, 0xFFFF).astype(np.uint32)
    value = np.where(rng.random(count) < 0.3, turn, value).astype(np.uint32)
    expected = np.where(stochastic == 1, round_stochastic(value, BF16, seed, stream, index), round_fp32(value, BF16))
    fields = {"index": index, "seed": np.full(count, seed), "stream": np.full(count, stream), "value": value}
    fields = {name: values.astype(np.uint32) for name, values in (fields | {"stochastic": stochastic}).items()}
    return fields, expected.astype(np.uint32)


REDUCER = PlayedUnit(ReduceLane(), REDUCE_PORTS, ReduceLane.LATENCY)
LATE = dict.fromkeys(("value", "stochastic"), RoundingLane.RANDOM_LATENCY)
ROUNDER = PlayedUnit(RoundingLane(), ("index", "seed", "stream", *LATE), RoundingLane.RANDOM_LATENCY, LATE)


@pytest.mark.parametrize(("lane", "cases", "factor"), [(REDUCER, reductions, 1), (ROUNDER, roundings, 5)])
def test_results_are_those_of_golden(lane, cases, factor, sim):
    assert_same(lane, *cases(factor * {"verilator": 10_000, "icarus": 200}[sim]), sim)
