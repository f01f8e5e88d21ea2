# amaranth: UnusedElaboratable=no

"""The fused multiply-add against golden, at every latency and in bulk."""

import numpy as np
import pytest

from neuroncore_rtl.golden import arith
from neuroncore_rtl.hdl.arith.fma import Fp32Fma
from neuroncore_rtl.spec.formats import FP32
from neuroncore_rtl.tb.stimulus.alu_cases import fma_cases
from tests.hdl.arith.units import PlayedUnit, differences, faulty_wire

PER_LATENCY = 300
FEW = 1_500
COUNT = {"verilator": 400_000, "icarus": 4_000}
PORTS = ("a", "b", "c")


def sums(a, b, c):
    return arith.multiply_add_fp32(*(words.view(np.float32) for words in (a, b, c))).view(np.uint32)


@pytest.mark.parametrize("latency", sorted(Fp32Fma.CUTS))
def test_result_is_that_of_golden(run, rng, latency):
    operands = fma_cases(rng, PER_LATENCY)
    got = run(Fp32Fma(latency), [dict(zip(PORTS, case, strict=True)) for case in zip(*operands, strict=True)])
    assert got == sums(*operands).tolist()


def test_results_in_bulk_are_those_of_golden(rng, sim):
    operands = fma_cases(rng, COUNT[sim])
    expected = sums(*operands)
    subnormal = (expected << 1 != 0) & (expected & 0x7F800000 == 0)
    assert subnormal.mean() > 0.03 and (expected == FP32.nan).any() and (expected << 1 == FP32.infinity << 1).any()
    cases = dict(zip(PORTS, operands, strict=True))
    wrong = differences(PlayedUnit(Fp32Fma(4), PORTS), cases, expected, sim)
    assert wrong.size == 0, [f"{word[wrong[0]]:08x}" for word in operands]


@pytest.mark.parametrize(
    ("wire", "expression"),
    [
        pytest.param("lost", "49'h0", id="sticky bit lost"),
        pytest.param("total", "({}) & 51'h3ffffffffffff", id="smaller number taken for the larger"),
        pytest.param("product", "({}) & ~48'h7fffff", id="product cut to 25 bits"),
    ],
)
def test_broken_unit_is_noticed(rng, wire, expression):
    operands = fma_cases(rng, FEW)
    unit, mutate = PlayedUnit(Fp32Fma(1), PORTS), faulty_wire(wire, expression)
    cases = dict(zip(PORTS, operands, strict=True))
    assert 0 < differences(unit, cases, sums(*operands), "icarus", mutate).size < FEW * 2 / 3


@pytest.mark.parametrize(
    ("a", "b", "c", "result"),
    [
        pytest.param(0x3F800000, 0x3F800000, 0xBF800000, 0x00000000, id="cancellation is +0"),
        pytest.param(0x80000000, 0x3F800000, 0x80000000, 0x80000000, id="both zeros negative"),
        pytest.param(0x80000000, 0x3F800000, 0x00000000, 0x00000000, id="zeros of both signs"),
        pytest.param(0x00000000, 0x7F7FFFFF, 0x80000001, 0x80000001, id="zero times the largest"),
        pytest.param(0x3F800001, 0x3F800001, 0xBF800002, 0x28800000, id="what a rounded product loses"),
        pytest.param(0x3F800001, 0x3F7FFFFE, 0xBF800000, 0xA8800000, id="the same below one"),
        pytest.param(0x7F800000, 0x00000000, 0x3F800000, FP32.nan, id="Inf * 0"),
        pytest.param(0x7F800000, 0x00000001, 0xFF800000, FP32.nan, id="Inf - Inf"),
        pytest.param(0x7F800000, 0x80000001, 0x7F7FFFFF, 0xFF800000, id="an infinite product of small exponent"),
        pytest.param(0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0x7F800000, id="an infinite addend of smaller exponent"),
        pytest.param(0x3F800000, 0x3F800000, 0xFF800001, FP32.nan, id="NaN is canonical"),
        pytest.param(0x7F7FFFFF, 0x40000000, 0xFF7FFFFF, 0x7F7FFFFF, id="overflow that the addend takes back"),
        pytest.param(0x7F7FFFFF, 0x3F800000, 0x73000000, 0x7F800000, id="tie at the largest overflows"),
        pytest.param(0x00000001, 0x00000001, 0x00000001, 0x00000001, id="vanishing product"),
        pytest.param(0x00000001, 0x00000001, 0x80000000, 0x00000000, id="vanishing product alone"),
        pytest.param(0x00000001, 0x80000001, 0x00800000, 0x00800000, id="vanishing product, subtracted"),
        pytest.param(0x00800000, 0x3F000000, 0x00000001, 0x00400001, id="subnormal sum"),
        pytest.param(0x1F800000, 0x1F800000, 0x80000001, 0x001FFFFF, id="product above a subnormal addend"),
        pytest.param(0x0D800000, 0x26800000, 0x80000001, 0x80000000, id="half the smallest cancelled, tie to zero"),
        pytest.param(0x0D400000, 0x26800000, 0x80000001, 0x80000001, id="less than half the smallest cancelled"),
        pytest.param(0x3F800000, 0x33800000, 0x3F800001, 0x3F800002, id="tie to even, up"),
        pytest.param(0x3F800001, 0x33800000, 0x3F800000, 0x3F800001, id="just above the tie"),
        pytest.param(0x33800001, 0x3F7FFFFE, 0x3F800000, 0x3F800000, id="2**-47 below the tie"),
    ],
)
def test_known_result(run, a, b, c, result):
    assert run(Fp32Fma(1), [{"a": a, "b": b, "c": c}, {"a": b, "b": a, "c": c}]) == [result, result]


@pytest.mark.parametrize("latency", (0, 5))
def test_latency_wrong(latency):
    with pytest.raises(ValueError, match=f"latency must be 1 to 4, not {latency}"):
        Fp32Fma(latency)
