# amaranth: UnusedElaboratable=no

"""The ALU against golden: every operation that one cycle is enough for, in both arithmetics."""

import numpy as np
import pytest

from neuroncore_rtl.golden.vector import alu
from neuroncore_rtl.hdl.elementwise.instruction import Op
from neuroncore_rtl.hdl.vector.alu import Alu
from neuroncore_rtl.spec.formats import FP32
from neuroncore_rtl.spec.isa.alu import SLOW, AluOp
from neuroncore_rtl.tb.stimulus.alu_cases import alu_cases
from tests.hdl.arith.units import PlayedUnit, differences, faulty_wire

SEED = 20260402
OPERATIONS = [op for op in AluOp if op not in SLOW]
COUNT = {"verilator": 8_000, "icarus": 100}
"""Cases of each operation and arithmetic."""

PORTS = ("op", "integer", "a", "b")


def alu_program(count):
    """Cases of the ALU, operations and arithmetics in random order, and their results by golden."""
    print(f"seed {SEED}")
    rng = np.random.default_rng(SEED)
    parts = []
    for op in OPERATIONS:
        for integer in (0, 1):
            a, b = alu_cases(rng, count)
            parts.append((np.full(count, op), np.full(count, integer), a, b, alu(op, a, b, bool(integer))))
    order = rng.permutation(count * len(parts))
    *operands, expected = (np.concatenate(column).astype(np.uint32)[order] for column in zip(*parts, strict=True))
    return dict(zip(PORTS, operands, strict=True)), expected


def described(cases, number):
    op, integer, a, b = (int(cases[name][number]) for name in PORTS)
    return f"{AluOp(op).name} {'int32' if integer else 'fp32'} {a:08x} {b:08x}"


def test_every_operation_is_that_of_golden(sim):
    cases, expected = alu_program(COUNT[sim])
    counts = np.bincount(cases["op"] * 2 + cases["integer"])
    assert (counts > 0).sum() == 2 * len(OPERATIONS)
    wrong = differences(PlayedUnit(Alu(), PORTS), cases, expected, sim)
    assert wrong.size == 0, f"{wrong.size} differ, first {described(cases, wrong[0])}"


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
def test_broken_alu_is_noticed(wire, expression, operations):
    cases, expected = alu_program(50)
    wrong = differences(PlayedUnit(Alu(), PORTS), cases, expected, "icarus", faulty_wire(wire, expression))
    assert wrong.size < len(expected) / 4
    assert operations <= {AluOp(op).name for op in cases["op"][wrong].tolist()}


ONE, TWO, NAN, INF, NEGATIVE = 0x3F800000, 0x40000000, FP32.nan, 0x7F800000, 1 << 31


KNOWN = [
    ("BYPASS", 0xFF812345, ONE, 0xFF812345, 0xFF812345),
    ("ADD", ONE, ONE, TWO, 0x7F000000),
    ("SUBTRACT", ONE, TWO, ONE | NEGATIVE, 0xFF800000),
    ("SUBTRACT", 0, 0xFFC12345, NAN, 0x003EDCBB),
    ("MULTIPLY", 0x00010001, 0x00010001, 0, 0x00020001),
    ("MAX", 0, NEGATIVE, 0, 0),
    ("MAX", NEGATIVE, 0, 0, 0),
    ("MAX", 0xFFFFFFFF, ONE, NAN, ONE),
    ("MAX", 0xBF800000, 0xC0000000, 0xBF800000, 0xC0000000),
    ("MIN", 0, NEGATIVE, NEGATIVE, NEGATIVE),
    ("MIN", 0x7F800001, ONE, NAN, ONE),
    ("ABSOLUTE_MAX", 0xC0000000, ONE, TWO, 0x40000000),
    ("ABSOLUTE_MAX", NEGATIVE, 5, 5, 5),
    ("ABSOLUTE_MAX", NEGATIVE, NEGATIVE, 0, NEGATIVE),
    ("ABSOLUTE_MAX", 0xFFFFFFFF, 0, NAN, 1),
    ("IS_EQUAL", 0, NEGATIVE, ONE, 0),
    ("IS_EQUAL", NAN, NAN, 0, 1),
    ("NOT_EQUAL", NAN, NAN, ONE, 0),
    ("IS_GE", NAN, NAN, 0, 1),
    ("IS_LE", NAN, ONE, 0, 0),
    ("IS_GT", 0, NEGATIVE, 0, 1),
    ("IS_LT", NEGATIVE, 0, 0, 1),
    ("IS_LT", 0xFF800000, INF, ONE, 1),
    ("IS_LT", 0xC0000000, 0xBF800000, ONE, 0),
    ("LOGICAL_AND", NAN, 1, ONE, 1),
    ("LOGICAL_OR", NEGATIVE, 0, 0, 1),
    ("LOGICAL_XOR", NEGATIVE, 1, ONE, 0),
    ("LOGICAL_SHIFT_LEFT", 0x80000001, 31, NEGATIVE, NEGATIVE),
    ("LOGICAL_SHIFT_LEFT", 1, 32, 0, 0),
    ("LOGICAL_SHIFT_RIGHT", NEGATIVE, 31, 1, 1),
    ("LOGICAL_SHIFT_RIGHT", 0xFFFFFFFF, NEGATIVE, 0, 0),
]
"""Operation, a, b, result in FP32, result in INT32."""


def test_known_results(sim):
    cases = [(Op[op].value, integer, a, b) for op, a, b, *_ in KNOWN for integer in (0, 1)]
    columns = np.array(cases, np.uint32).T
    expected = np.array([result for *_, fp32, int32 in KNOWN for result in (fp32, int32)], np.uint32)
    fields = dict(zip(PORTS, columns, strict=True))
    wrong = differences(PlayedUnit(Alu(), PORTS), fields, expected, sim)
    assert [described(fields, number) for number in wrong] == []


def test_operations_are_those_of_the_instruction_set():
    assert {op.name: op.value for op in Op} == {op.name: op.value for op in AluOp}
