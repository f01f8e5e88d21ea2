# amaranth: UnusedElaboratable=no

"""The ALU against golden: every operation that one cycle is enough for, in both arithmetics."""

import numpy as np
import pytest

from neuroncore_rtl.golden.vector import alu
from neuroncore_rtl.hdl.vector.alu import Alu
from neuroncore_rtl.spec.isa.alu import SLOW, AluOp
from neuroncore_rtl.tb.harness.player import PlayedUnit
from neuroncore_rtl.tb.stimulus.alu_cases import alu_cases
from tests.hdl.arith.units import assert_same, differences, faulty_wire, shuffled
from tests.oracles.known import ALU

SEED = 20260402
OPERATIONS = [op for op in AluOp if op not in SLOW]
COUNT = {"verilator": 8_000, "icarus": 100}
"""Cases of each operation and arithmetic."""

PORTS = ("op", "integer", "a", "b")
UNIT = PlayedUnit(Alu(), PORTS)


def alu_program(rng, count):
    """Cases of the ALU, operations and arithmetics in random order, and their results by golden."""
    parts = []
    for op in OPERATIONS:
        for integer in (False, True):
            a, b = alu_cases(rng, count)
            parts.append((op, integer, a, b, alu(op, a, b, integer)))
    return shuffled(rng, parts, PORTS)


def test_every_operation_is_that_of_golden(rng, sim):
    cases, expected = alu_program(rng, COUNT[sim])
    counts = np.bincount(cases["op"] * 2 + cases["integer"])
    assert (counts > 0).sum() == 2 * len(OPERATIONS)
    assert_same(UNIT, cases, expected, sim)


ORDER = {"MAX", "MIN", "ABSOLUTE_MAX", "IS_GT", "IS_GE", "IS_LT", "IS_LE"}


@pytest.mark.parametrize(
    ("wire", "expression", "operations"),
    [
        pytest.param("unordered", "1'h0", ORDER, id="NaN taken for a number"),
        pytest.param("below", "x_key < y_key", ORDER - {"ABSOLUTE_MAX"}, id="negative taken for large"),
        pytest.param("far", "1'h0", {"LOGICAL_SHIFT_LEFT", "LOGICAL_SHIFT_RIGHT"}, id="shift distance cut"),
        pytest.param("subtract", "1'h0", {"SUBTRACT"}, id="adds always"),
    ],
)
def test_broken_alu_is_noticed(rng, wire, expression, operations):
    cases, expected = alu_program(rng, 50)
    wrong = differences(UNIT, cases, expected, "icarus", faulty_wire(wire, expression))
    assert wrong.size < len(expected) / 4
    assert operations <= {AluOp(op).name for op in cases["op"][wrong].tolist()}


def test_known_results(rng, sim):
    parts = [(op, integer, a, b, results[integer]) for op, a, b, *results in ALU for integer in (0, 1)]
    assert_same(UNIT, *shuffled(rng, parts, PORTS), sim)
