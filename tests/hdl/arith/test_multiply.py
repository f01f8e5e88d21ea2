# amaranth: UnusedElaboratable=no

"""The FP32 multiplier against golden, at every latency and in bulk."""

import numpy as np
import pytest

from neuroncore_rtl.golden import arith
from neuroncore_rtl.hdl.arith.multiply import Fp32Multiplier
from neuroncore_rtl.spec.formats import FP32
from neuroncore_rtl.tb.stimulus.alu_cases import multiply_cases
from tests.hdl.arith.units import PlayedUnit, differences, faulty_wire

PER_LATENCY = 300
FEW = 1_500
COUNT = {"verilator": 250_000, "icarus": 4_000}


def products(a, b):
    return arith.multiply_fp32(a.view(np.float32), b.view(np.float32)).view(np.uint32)


@pytest.mark.parametrize("latency", sorted(Fp32Multiplier.CUTS))
def test_product_is_that_of_golden(run, rng, latency):
    a, b = multiply_cases(rng, PER_LATENCY)
    got = run(Fp32Multiplier(latency), [{"a": x, "b": y} for x, y in zip(a, b, strict=True)])
    assert got == products(a, b).tolist()


def test_products_in_bulk_are_those_of_golden(rng, sim):
    a, b = multiply_cases(rng, COUNT[sim])
    expected = products(a, b)
    subnormal = (expected << 1 != 0) & (expected & 0x7F800000 == 0)
    assert subnormal.mean() > 0.05 and (expected == FP32.nan).any() and (expected << 1 == FP32.infinity << 1).any()
    wrong = differences(PlayedUnit(Fp32Multiplier(1), ("a", "b")), {"a": a, "b": b}, expected, sim)
    assert wrong.size == 0, f"{a[wrong[0]]:08x} * {b[wrong[0]]:08x}"


@pytest.mark.parametrize(
    ("wire", "expression"),
    [
        pytest.param("aligned", "({}) & 26'h3fffffe", id="sticky bit lost"),
        pytest.param("swap", "1'h1", id="first operand not normalised"),
        pytest.param("overflow", "1'h0", id="no overflow"),
    ],
)
def test_broken_multiplier_is_noticed(rng, wire, expression):
    a, b = multiply_cases(rng, FEW)
    unit, mutate = PlayedUnit(Fp32Multiplier(1), ("a", "b")), faulty_wire(wire, expression)
    assert 0 < differences(unit, {"a": a, "b": b}, products(a, b), "icarus", mutate).size < FEW / 2


@pytest.mark.parametrize(
    ("a", "b", "product"),
    [
        pytest.param(0x3F800000, 0x12345678, 0x12345678, id="one"),
        pytest.param(0x80000000, 0x3F800000, 0x80000000, id="-0"),
        pytest.param(0x80000000, 0x80000001, 0x00000000, id="-0 times a subnormal"),
        pytest.param(0x7F800000, 0x00000000, FP32.nan, id="Inf * 0"),
        pytest.param(0x7F800000, 0x80000001, 0xFF800000, id="Inf times a subnormal"),
        pytest.param(0xFF800001, 0x00000000, FP32.nan, id="NaN is canonical"),
        pytest.param(0x7F7FFFFF, 0x3F800001, 0x7F800000, id="overflow"),
        pytest.param(0x7F7FFFFF, 0x7F7FFFFF, 0x7F800000, id="overflow by far"),
        pytest.param(0x7F7FFFFF, 0x00000001, 0x34FFFFFF, id="largest times smallest"),
        pytest.param(0x00000001, 0x3F000000, 0x00000000, id="half the smallest ties to zero"),
        pytest.param(0x00000001, 0x3F000001, 0x00000001, id="just above half the smallest"),
        pytest.param(0x00000003, 0x3F000000, 0x00000002, id="subnormal tie to even, up"),
        pytest.param(0x00FFFFFF, 0x3F000000, 0x00800000, id="rounds up to the smallest normal"),
        pytest.param(0x00800000, 0x3F7FFFFF, 0x00800000, id="tie below the smallest normal"),
        pytest.param(0x807FFFFF, 0x007FFFFF, 0x80000000, id="subnormals underflow, sign kept"),
        pytest.param(0x3F800001, 0x3F800001, 0x3F800002, id="inexact, down"),
        pytest.param(0x3FFFFFFF, 0x3FFFFFFF, 0x407FFFFE, id="product above two"),
        pytest.param(0x3F800003, 0x3F400000, 0x3F400004, id="tie to even, down"),
        pytest.param(0x3F800001, 0x3FC00000, 0x3FC00002, id="tie to even, up"),
    ],
)
def test_known_product(run, a, b, product):
    assert run(Fp32Multiplier(1), [{"a": a, "b": b}, {"a": b, "b": a}]) == [product, product]


@pytest.mark.parametrize("latency", (0, 4))
def test_latency_wrong(latency):
    with pytest.raises(ValueError, match=f"latency must be 1 to 3, not {latency}"):
        Fp32Multiplier(latency)
