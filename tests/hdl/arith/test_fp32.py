from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest

from neuroncore_rtl.golden import arith
from neuroncore_rtl.hdl.arith import add, fma, round
from neuroncore_rtl.hdl.arith.decode import EdgeDecoder
from neuroncore_rtl.hdl.arith.widen import Widen
from neuroncore_rtl.run.harness.player import PlayedUnit
from neuroncore_rtl.spec.formats import FP32
from neuroncore_rtl.tb.stimulus.alu_cases import fma_cases, multiply_cases
from neuroncore_rtl.tb.stimulus.one_bit import lone_bits, lone_factors, lone_products
from neuroncore_rtl.tb.stimulus.operands import add_cases
from tests.hdl.arith.units import assert_same, differences, faulty_wire, run
from tests.hdl.simulation import slow_if
from tests.oracles import words
from tests.oracles.hard import hard_cases

FEW = 1_500
NEGATIVE_ZERO = 1 << 31


def sum_cases(rng, count):
    return np.concatenate([add_cases(rng, count), hard_cases("add")], axis=1)


def product_cases(rng, count):
    return as_product(*multiply_cases(rng, count))


def as_product(a, b):
    return a, b, np.full_like(a, NEGATIVE_ZERO)


class Feedforward(NamedTuple):
    kind: type
    golden: Callable
    cases: Callable
    latency: int
    count: int
    ports: str


UNITS = {
    "add": Feedforward(add.Fp32Adder, arith.add_fp32, sum_cases, 2, 300_000, "ab"),
    "multiply": Feedforward(fma.Fp32Fma, lambda a, b, c: arith.multiply_fp32(a, b), product_cases, 1, 250_000, "abc"),
    "fma": Feedforward(fma.Fp32Fma, arith.multiply_add_fp32, fma_cases, 4, 400_000, "abc"),
}
LATENCIES = [(name, latency) for name, unit in UNITS.items() for latency in sorted(unit.kind.CUTS)]


def bulk(name, operands) -> tuple:
    unit = UNITS[name]
    cases = dict(zip(unit.ports, operands, strict=True))
    return PlayedUnit(unit.kind(unit.latency), tuple(unit.ports)), cases, words.on_words(unit.golden, *operands)


@pytest.mark.parametrize(("name", "latency"), slow_if(lambda name, n: name == "add" and n in (2, 3, 5, 6), LATENCIES))
def test_result_is_that_of_golden(rng, name, latency):
    _, cases, expected = bulk(name, UNITS[name].cases(rng, 900 if name == "add" else 300))
    assert run(UNITS[name].kind(latency), cases) == expected.tolist()


@pytest.mark.parametrize("name", UNITS)
def test_results_in_bulk_are_those_of_golden(rng, name, sim):
    unit = UNITS[name]
    played, cases, expected = bulk(name, unit.cases(rng, unit.count if sim == "verilator" else 4_000))
    subnormal = (expected << 1 != 0) & (expected & 0x7F800000 == 0)
    assert subnormal.mean() > 0.03 and (expected == FP32.nan).any() and (expected << 1 == FP32.infinity << 1).any()
    assert_same(played, cases, expected, sim)


@pytest.mark.parametrize(("name", "cases"), [("add", lone_bits), ("multiply", lone_factors), ("fma", lone_products)])
def test_one_bit_decides(name, cases):
    operands = cases()
    assert len(operands[0]) > (80 if name == "multiply" else 4_000)
    operands = np.concatenate([operands, hard_cases(name)], axis=1)
    operands = as_product(*operands) if name == "multiply" else operands
    assert_same(*bulk(name, operands), "verilator")


def test_a_faulty_unit_is_detected(rng):
    takes_smaller = faulty_wire("total", "({}) & 53'hfffffffffffff")
    wrong = differences(*bulk("fma", fma_cases(rng, FEW)), "icarus", takes_smaller)
    assert 0 < wrong.size < FEW * 2 / 3


@pytest.mark.parametrize("latency", fma.Fp32Fma.CUTS)
def test_integer_products_between_fp32_products(rng, latency):
    a, b = rng.integers(0, 1 << 32, (2, 300), np.uint32)
    integer = rng.integers(0, 2, 300)
    unit = fma.Fp32Fma(latency)
    found = run(unit, {"a": a, "b": b, "integer": integer}, "product", unit.product_latency)
    assert np.array(found)[integer == 1].tolist() == (a * b)[integer == 1].tolist()


@pytest.mark.parametrize("kind", [add.Fp32Adder, fma.Fp32Fma, round.Fp32Rounder, EdgeDecoder, Widen])
def test_latency_wrong(kind):
    least, most = min(kind.CUTS), max(kind.CUTS)
    for latency in (least - 1, most + 1):
        with pytest.raises(ValueError, match=f"latency must be {least} to {most}, not {latency}"):
            kind(latency=latency)
