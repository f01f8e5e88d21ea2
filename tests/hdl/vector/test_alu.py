# amaranth: UnusedElaboratable=no

"""The ALU against golden: every operation that one cycle is enough for, in both arithmetics."""

import numpy as np
import pytest

from neuroncore_rtl.golden.vector import alu
from neuroncore_rtl.hdl.vector.alu import Alu
from neuroncore_rtl.spec.isa.alu import FLOAT_ONLY, SLOW, AluOp, Arithmetic
from neuroncore_rtl.tb.harness.player import PlayedUnit
from neuroncore_rtl.tb.stimulus.alu_cases import alu_cases
from tests.hdl.arith.units import assert_same, differences, faulty_wire, run, shuffled
from tests.oracles.known import ALU

SEED = 20260402
OPERATIONS = [(op, kind) for op in AluOp if op not in SLOW for kind in Arithmetic if not (kind and op in FLOAT_ONLY)]
COUNT = {"verilator": 8_000, "icarus": 100}
"""Cases of each operation and arithmetic."""

PORTS = ("op", "integer", "uint32", "a", "b")
UNIT = PlayedUnit(Alu(), PORTS)


def flags(arithmetic):
    return arithmetic != Arithmetic.FP32, arithmetic == Arithmetic.UINT32


def alu_program(rng, count):
    """Cases of the ALU, operations and arithmetics in random order, and their results by golden."""
    parts = []
    for op, arithmetic in OPERATIONS:
        a, b = alu_cases(rng, count)
        parts.append((op, *flags(arithmetic), a, b, alu(op, a, b, arithmetic)))
    return shuffled(rng, parts, PORTS)


def test_every_operation_is_that_of_golden(rng, sim):
    cases, expected = alu_program(rng, COUNT[sim])
    counts = np.bincount(cases["op"] * 4 + cases["integer"] * 2 + cases["uint32"])
    assert (counts > 0).sum() == len(OPERATIONS)
    assert_same(UNIT, cases, expected, sim)


@pytest.mark.parametrize("latency", [2, 6])
def test_more_stages_change_no_result(rng, latency):
    cases, expected = alu_program(rng, 3)
    assert run(Alu(latency), cases) == expected.tolist()


ORDER = {"MAX", "MIN", "ABSOLUTE_MAX", "IS_GT", "IS_GE", "IS_LT", "IS_LE"}
MAGNITUDE = {"ABSOLUTE_MAX", "LARGER_MAGNITUDE", "SMALLER_MAGNITUDE"}


@pytest.mark.parametrize(
    ("wire", "expression", "operations"),
    [
        pytest.param("unordered", "1'h0", ORDER, id="NaN taken for a number"),
        pytest.param("below", "lower", ORDER - {"ABSOLUTE_MAX"}, id="negative taken for large"),
        pytest.param("by_magnitude", "1'h0", MAGNITUDE, id="signs decide"),
        pytest.param("up", "1'h1", {"FLOOR", "CEIL", "TRUNC"}, id="rounds away from zero"),
        pytest.param("up", "1'h0", {"FLOOR", "CEIL"}, id="rounds toward zero"),
        pytest.param("far", "1'h0", {"LOGICAL_SHIFT_LEFT", "LOGICAL_SHIFT_RIGHT"}, id="shift distance cut"),
        pytest.param("subtracts", "1'h0", {"SUBTRACT"}, id="adds always"),
        pytest.param("same", "1'h0", {"IS_EQUAL", "LARGER_MAGNITUDE"}, id="nothing is equal"),
    ],
)
def test_broken_alu_is_noticed(rng, wire, expression, operations):
    cases, expected = alu_program(rng, 50)
    wrong = differences(UNIT, cases, expected, "icarus", faulty_wire(wire, expression))
    assert wrong.size < len(expected) / 4
    assert operations <= {AluOp(op).name for op in cases["op"][wrong].tolist()}


def test_known_results(rng, sim):
    parts = [
        (op, *flags(arithmetic), a, b, result)
        for op, a, b, *results in ALU
        for arithmetic, result in zip(Arithmetic, results, strict=op not in FLOAT_ONLY)
    ]
    assert_same(UNIT, *shuffled(rng, parts, PORTS), sim)
