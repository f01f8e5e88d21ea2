import itertools

import numpy as np
import pytest

from neuroncore_rtl.hdl.scalar import product, result
from neuroncore_rtl.spec.formats import FP32
from neuroncore_rtl.spec.functions import FUNCTIONS, TRIGONOMETRIC, layout, load_tables
from neuroncore_rtl.spec.functions.layout import CONTROL_FIELDS, control_address
from neuroncore_rtl.tb.stimulus.operands import special_fp32
from tests.hdl.arith.units import assert_same
from tests.hdl.scalar import activations
from tests.hdl.scalar.activations import ALPHAS, STAGED, UNIT, argument_cases, border_arguments, cases_of, results
from tests.hdl.simulation import slow

SEED = 20260403
COUNT = {"verilator": 8_000, "icarus": 150}


def test_every_function_is_that_of_golden(rng, sim):
    cases = argument_cases(rng, COUNT[sim])
    expected = results(**cases)
    assert (np.bincount(cases["function"]) >= COUNT[sim]).all()
    finite = expected & 0x7F800000 != 0x7F800000
    subnormal = (expected & 0x7F800000 == 0) & (expected << 1 != 0)
    assert finite.mean() > 0.6 and subnormal.sum() > 10 and (expected == FP32.nan).any()
    assert_same(UNIT, cases, expected, sim)


@pytest.mark.slow
def test_every_function_in_stages_without_quarter_turns_is_that_of_golden(rng):
    cases = argument_cases(rng, COUNT["verilator"])
    able = ~np.isin(cases["function"], [FUNCTIONS[name].code for name in TRIGONOMETRIC])
    cases = {name: words[able] for name, words in cases.items()}
    assert_same(STAGED[False], cases, results(**cases), "verilator")


each_unit = pytest.mark.parametrize("unit", [UNIT, *slow(STAGED[True])], ids=["at once", "in stages"])


@pytest.mark.slow
@each_unit
def test_a_million_results(unit, rng):
    cases = argument_cases(rng, 1_000_000 // len(FUNCTIONS) + 1)
    assert len(cases["z"]) > 1_000_000
    assert_same(unit, cases, results(**cases), "verilator")


def zeros_of_position(word: int) -> int:
    significand, exponent = word & (1 << 23) - 1 | 1 << 23, (word >> 23 & 0xFF) - FP32.bias
    position = significand * layout.window(exponent) >> 16 & (1 << layout.REDUCED_BITS) - 1
    return max(layout.REDUCED_BITS - way.bit_length() for way in (position, position ^ (1 << layout.REDUCED_BITS) - 1))


@each_unit
def test_numbers_close_to_quarter_turns(unit):
    z = activations.near_quarter_turns()
    assert len(z) > 300 and max(map(zeros_of_position, z.tolist())) == layout.REDUCED_ZEROS
    cases = cases_of([(name, z, 0) for name in TRIGONOMETRIC])
    expected = results(**cases)
    assert (expected << 1 < 0x66000000).sum() > 50  # below 2**-25
    assert_same(unit, cases, expected, "verilator")


@pytest.mark.slow
def test_no_number_is_closer_to_a_quarter_turn():
    significands, mask = np.arange(1 << 23, 1 << 24, dtype=np.uint64), np.uint64((1 << layout.REDUCED_BITS) - 1)
    least = 1 << layout.REDUCED_BITS
    for exponent in range(FP32.bias + 1):
        high, low = (np.uint64(part) for part in divmod(layout.window(exponent), 1 << 40))
        positions = ((significands * high << np.uint64(24)) + (significands * low >> np.uint64(16))) & mask
        least = min(least, int(positions.min()), int(mask - positions.max()))
    assert layout.REDUCED_BITS - least.bit_length() == layout.REDUCED_ZEROS


@each_unit
def test_numbers_close_to_halfway(unit):
    cases = activations.close_calls(400)
    # At most eight functions, such as the identity or a constant, have few such cases.
    assert (np.bincount(cases["function"]) > 40).sum() > len(FUNCTIONS) - 8
    assert_same(unit, cases, results(**cases), "verilator")


@each_unit
def test_products_halfway_or_one_bit_beside(unit):
    cases = activations.halfway_products()
    expected = results(**cases)
    assert len(expected) > 500 and (expected & FP32.infinity == 0).mean() > 0.5
    assert_same(unit, cases, expected, "verilator")


def test_factors_fit_where_they_are_narrower_than_their_sums():
    tables = load_tables()
    t = np.append(np.arange(0, 1 << layout.LOCAL_BITS, 1 << 12), (1 << layout.LOCAL_BITS) - 1)
    _, c1, c2, c3, _ = np.array(tables.segments, np.int64).T[:, :, np.newaxis]
    q2 = c2 + (t * c3 >> layout.LOCAL_BITS)
    q1 = c1 + (t * q2 >> layout.LOCAL_BITS)
    for factor, shape in ((q2, product.LINEAR), (q1, product.QUADRATIC)):
        # Between two of these t it changes by less than a thousandth.
        assert 1.001 * np.abs(factor).max() < 1 << shape.width - 1
    _, c1, c2 = np.array(tables.exp2, np.int64).T[:, :, np.newaxis]
    assert (c1 + (t * c2 >> layout.LOCAL_BITS)).max() * 1.001 < 1 << result.SERIES_BITS


def test_only_trigonometric_functions_use_quarter_turns():
    turning = {layout.Coordinate.SIN, layout.Coordinate.COS}
    found = set()
    for function, negative, row in itertools.product(FUNCTIONS.values(), (0, 1), range(1 << layout.ROW_BITS)):
        word = load_tables().control[control_address(function.code, negative, row)]
        control = dict(zip(CONTROL_FIELDS, word, strict=True))
        if control["coordinate"] in turning or control["factor"] == layout.Factor.REDUCED:
            found.add(function.name)
    assert found == set(TRIGONOMETRIC)


def test_every_bf16_argument_special_argument_and_border_of_segments():
    bf16 = np.arange(1 << 16, dtype=np.uint32) << 16
    parts = [(name, bf16, 0) for name in ("exp", "gelu_tanh", "sin", "rsqrt")]
    for name in FUNCTIONS:
        z = border_arguments(name)
        parts += [(name, z, np.resize(ALPHAS, len(z))), *((name, special_fp32(), alpha) for alpha in ALPHAS)]
    cases = cases_of(parts)
    assert_same(UNIT, cases, results(**cases), "verilator")
