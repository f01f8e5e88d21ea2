# amaranth: UnusedElaboratable=no

import numpy as np
import pytest

from neuroncore_rtl.golden import arith, vector
from neuroncore_rtl.hdl.vector.alu import VectorAlu
from neuroncore_rtl.run.harness.player import PlayedUnit
from neuroncore_rtl.spec.isa.alu import FLOAT_ONLY, SLOW, AluOp, Arithmetic
from neuroncore_rtl.tb.stimulus.alu_cases import alu_cases, fma_cases
from neuroncore_rtl.tb.stimulus.one_bit import bits_apart, lone_bits, lone_factors, lone_products
from neuroncore_rtl.tb.stimulus.operands import add_cases
from tests.hdl.arith.units import assert_same, run, shuffled
from tests.hdl.simulation import drive, simulated
from tests.hdl.vector.units import flags
from tests.oracles import words
from tests.oracles.hard import hard_cases

SEED = 20260402
OPERATIONS = [(op, kind) for op in AluOp if op not in SLOW for kind in Arithmetic if not (kind and op in FLOAT_ONLY)]
PORTS = ("op", "integer", "uint32", "a", "b")
UNIT = PlayedUnit(VectorAlu(), PORTS)


def alu_program(rng, draw, operations=OPERATIONS):
    parts = []
    for op, arithmetic in operations:
        a, b = draw()
        parts.append((op, *flags(arithmetic).values(), a, b, vector.alu(op, a, b, arithmetic)))
    return shuffled(rng, parts, PORTS)


def test_every_operation_is_that_of_golden(rng, sim):
    cases, expected = alu_program(rng, lambda: alu_cases(rng, {"verilator": 8_000, "icarus": 100}[sim]))
    counts = np.bincount(cases["op"] * 4 + cases["integer"] * 2 + cases["uint32"])
    assert (counts > 0).sum() == len(OPERATIONS)
    assert_same(UNIT, cases, expected, sim)


@pytest.mark.slow
@pytest.mark.parametrize("latency", [1, 6])
def test_a_million_results(latency, rng):
    cases, expected = alu_program(rng, lambda: alu_cases(rng, 1_000_000 // len(OPERATIONS) + 1))
    assert len(expected) > 1_000_000
    assert_same(PlayedUnit(VectorAlu(latency), PORTS), cases, expected, "verilator")


def test_one_bit_of_a_nan_zero_distance_product_or_sum_decides(rng):
    pairs = np.concatenate([bits_apart(), lone_factors(), lone_bits(), hard_cases("alu")], axis=1)
    assert_same(UNIT, *alu_program(rng, lambda: pairs), "verilator")


@simulated(VectorAlu)
async def test_sums_and_products_are_lent_to_the_statistics(ctx, unit, rng):
    # The borrowed units work in cycles in which the ALU's operation does not use them, and do not affect its results.
    lenders = [pair for pair in OPERATIONS if pair[0] not in (AluOp.ADD, AluOp.SUBTRACT, AluOp.MULTIPLY)]
    cases, expected = alu_program(rng, lambda: alu_cases(rng, 25), lenders)
    count = len(expected)
    sums, lone, found = add_cases(rng, count), np.stack(lone_products()), []
    factors = np.where(rng.random(count) < 0.5, lone[:, rng.integers(0, lone.shape[1], count)], fma_cases(rng, count))
    for number in range(count):
        drive(ctx, unit, **{name: int(column[number]) for name, column in cases.items()})
        for port, names, sides in ((unit.sum, "ab", sums), (unit.fused, "abc", factors)):
            ctx.set(port, {"takes": 1} | {name: int(side[number]) for name, side in zip(names, sides, strict=True)})
        await ctx.tick()
        found.append([ctx.get(port) for port in (unit.out, unit.summed, unit.multiplied)])
    found = np.array(found, np.uint32).T
    lent = words.on_words(arith.add_fp32, *sums), words.on_words(arith.multiply_add_fp32, *factors)
    assert [(ours != theirs).sum() for ours, theirs in zip(found, (expected, *lent), strict=True)] == [0, 0, 0]


@pytest.mark.parametrize("latency", [2, 6])
def test_more_stages_change_no_result(rng, latency):
    cases, expected = alu_program(rng, lambda: alu_cases(rng, 3))
    assert run(VectorAlu(latency), cases) == expected.tolist()
