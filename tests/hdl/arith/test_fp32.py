# amaranth: UnusedElaboratable=no

"""FP32 adder, multiplier and fused multiply-add against golden: at every latency, in bulk, and broken on purpose."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from neuroncore_rtl.golden import arith
from neuroncore_rtl.hdl.arith.add import Fp32Adder
from neuroncore_rtl.hdl.arith.fma import Fp32Fma
from neuroncore_rtl.hdl.arith.multiply import Fp32Multiplier
from neuroncore_rtl.spec.formats import FP32
from neuroncore_rtl.tb.stimulus import operands as stimulus
from neuroncore_rtl.tb.stimulus.alu_cases import fma_cases, multiply_cases
from tests.hdl.arith.units import PlayedUnit, differences, faulty_wire

FEW = 1_500


def sum_cases(rng, count):
    """Pairs of FP32 patterns: special ones, random ones, cancelling, close and distant ones."""
    count = -(-count // 3)
    special = stimulus.special_fp32()
    chosen = rng.choice(special, (2, count))
    random = stimulus.random_fp32(rng, count), stimulus.random_fp32(rng, count)
    first = stimulus.random_fp32(rng, count)
    steps = rng.integers(-30, 31, count) * (1 << 23) * rng.integers(0, 2, count)
    steps += rng.choice([0, 0, 1, -1, 2, -2, 1 << 22, *(1 << rng.integers(0, 23, 8))], count)
    steps = steps.astype(np.uint32)
    close = first, (first ^ np.uint32(1 << 31)) + steps
    return np.concatenate([chosen, random, close], axis=1).astype(np.uint32)


@dataclass(frozen=True, kw_only=True)
class Feedforward:
    """A unit with its golden function, cases of it, at which latency it runs in bulk, and how many cases that is."""

    kind: type
    golden: Callable
    cases: Callable
    ports: tuple[str, ...] = ("a", "b")
    latency: int
    count: int

    def results(self, operands) -> np.ndarray:
        """Return golden's results."""
        return self.golden(*(words.view(np.float32) for words in operands)).view(np.uint32)

    def differences(self, operands, expected, latency: int, sim: str, mutate: Callable | None = None) -> np.ndarray:
        """Return the numbers of the cases whose result is not the expected one."""
        cases = dict(zip(self.ports, operands, strict=True))
        return differences(PlayedUnit(self.kind(latency), self.ports), cases, expected, sim, mutate)


UNITS = {
    "add": Feedforward(kind=Fp32Adder, golden=arith.add_fp32, cases=sum_cases, latency=2, count=300_000),
    "multiply": Feedforward(
        kind=Fp32Multiplier, golden=arith.multiply_fp32, cases=multiply_cases, latency=1, count=250_000
    ),
    "fma": Feedforward(
        kind=Fp32Fma, golden=arith.multiply_add_fp32, cases=fma_cases, ports=("a", "b", "c"), latency=4, count=400_000
    ),
}
LATENCIES = [(name, latency) for name, unit in UNITS.items() for latency in sorted(unit.kind.CUTS)]


@pytest.mark.parametrize(("name", "latency"), LATENCIES)
def test_result_is_that_of_golden(run, rng, name, latency):
    unit = UNITS[name]
    operands = unit.cases(rng, 900 if name == "add" else 300)
    got = run(unit.kind(latency), [dict(zip(unit.ports, case, strict=True)) for case in zip(*operands, strict=True)])
    assert got == unit.results(operands).tolist()


@pytest.mark.parametrize("name", UNITS)
def test_results_in_bulk_are_those_of_golden(rng, name, sim):
    unit = UNITS[name]
    operands = unit.cases(rng, unit.count if sim == "verilator" else 4_000)
    expected = unit.results(operands)
    subnormal = (expected << 1 != 0) & (expected & 0x7F800000 == 0)
    assert subnormal.mean() > 0.03 and (expected == FP32.nan).any() and (expected << 1 == FP32.infinity << 1).any()
    wrong = unit.differences(operands, expected, unit.latency, sim)
    assert wrong.size == 0, [f"{word[wrong[0]]:08x}" for word in operands]


@pytest.mark.parametrize(
    ("name", "wire", "expression"),
    [
        pytest.param("multiply", "aligned", "({}) & 26'h3fffffe", id="sticky bit lost"),
        pytest.param("multiply", "swap", "1'h1", id="first operand not normalised"),
        pytest.param("multiply", "overflow", "1'h0", id="no overflow"),
        pytest.param("fma", "lost", "49'h0", id="sticky bit of the sum lost"),
        pytest.param("fma", "total", "({}) & 51'h3ffffffffffff", id="smaller number taken for the larger"),
        pytest.param("fma", "product", "({}) & ~48'h7fffff", id="product cut to 25 bits"),
    ],
)
def test_broken_unit_is_noticed(rng, name, wire, expression):
    unit = UNITS[name]
    operands = unit.cases(rng, FEW)
    wrong = unit.differences(operands, unit.results(operands), 1, "icarus", faulty_wire(wire, expression))
    assert 0 < wrong.size < FEW * 2 / 3


KNOWN = {
    "add": {
        "both zeros negative": (0x80000000, 0x80000000, 0x80000000),
        "zeros of both signs": (0x00000000, 0x80000000, 0x00000000),
        "cancellation is +0": (0xBF800000, 0x3F800000, 0x00000000),
        "Inf - Inf": (0x7F800000, 0xFF800000, FP32.nan),
        "-Inf - Inf": (0xFF800000, 0xFF800000, 0xFF800000),
        "NaN is canonical": (0xFFC00001, 0x3F800000, FP32.nan),
        "Inf + NaN": (0x7F800000, 0x7F800001, FP32.nan),
        "tie at the largest overflows": (0x7F7FFFFF, 0x73000000, 0x7F800000),
        "just below the tie at the largest": (0x7F7FFFFF, 0x72FFFFFF, 0x7F7FFFFF),
        "smallest normal minus smallest subnormal": (0x00800000, 0x80000001, 0x007FFFFF),
        "subnormals carry into the smallest normal": (0x007FFFFF, 0x00000001, 0x00800000),
        "tie to even, down": (0x3F800000, 0x33800000, 0x3F800000),
        "tie to even, up": (0x3F800001, 0x33800000, 0x3F800002),
        "just above the tie": (0x3F800000, 0x33800001, 0x3F800001),
        "far smaller, subtracted": (0x4B800000, 0xB3800000, 0x4B800000),
    },
    "multiply": {
        "one": (0x3F800000, 0x12345678, 0x12345678),
        "-0": (0x80000000, 0x3F800000, 0x80000000),
        "-0 times a subnormal": (0x80000000, 0x80000001, 0x00000000),
        "Inf * 0": (0x7F800000, 0x00000000, FP32.nan),
        "Inf times a subnormal": (0x7F800000, 0x80000001, 0xFF800000),
        "NaN is canonical": (0xFF800001, 0x00000000, FP32.nan),
        "overflow": (0x7F7FFFFF, 0x3F800001, 0x7F800000),
        "overflow by far": (0x7F7FFFFF, 0x7F7FFFFF, 0x7F800000),
        "largest times smallest": (0x7F7FFFFF, 0x00000001, 0x34FFFFFF),
        "half the smallest ties to zero": (0x00000001, 0x3F000000, 0x00000000),
        "just above half the smallest": (0x00000001, 0x3F000001, 0x00000001),
        "subnormal tie to even, up": (0x00000003, 0x3F000000, 0x00000002),
        "rounds up to the smallest normal": (0x00FFFFFF, 0x3F000000, 0x00800000),
        "tie below the smallest normal": (0x00800000, 0x3F7FFFFF, 0x00800000),
        "subnormals underflow, sign kept": (0x807FFFFF, 0x007FFFFF, 0x80000000),
        "inexact, down": (0x3F800001, 0x3F800001, 0x3F800002),
        "product above two": (0x3FFFFFFF, 0x3FFFFFFF, 0x407FFFFE),
        "tie to even, down": (0x3F800003, 0x3F400000, 0x3F400004),
        "tie to even, up": (0x3F800001, 0x3FC00000, 0x3FC00002),
    },
    "fma": {
        "cancellation is +0": (0x3F800000, 0x3F800000, 0xBF800000, 0x00000000),
        "both zeros negative": (0x80000000, 0x3F800000, 0x80000000, 0x80000000),
        "zeros of both signs": (0x80000000, 0x3F800000, 0x00000000, 0x00000000),
        "zero times the largest": (0x00000000, 0x7F7FFFFF, 0x80000001, 0x80000001),
        "what a rounded product loses": (0x3F800001, 0x3F800001, 0xBF800002, 0x28800000),
        "the same below one": (0x3F800001, 0x3F7FFFFE, 0xBF800000, 0xA8800000),
        "Inf * 0": (0x7F800000, 0x00000000, 0x3F800000, FP32.nan),
        "Inf - Inf": (0x7F800000, 0x00000001, 0xFF800000, FP32.nan),
        "an infinite product of small exponent": (0x7F800000, 0x80000001, 0x7F7FFFFF, 0xFF800000),
        "an infinite addend of smaller exponent": (0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0x7F800000),
        "NaN is canonical": (0x3F800000, 0x3F800000, 0xFF800001, FP32.nan),
        "overflow that the addend takes back": (0x7F7FFFFF, 0x40000000, 0xFF7FFFFF, 0x7F7FFFFF),
        "tie at the largest overflows": (0x7F7FFFFF, 0x3F800000, 0x73000000, 0x7F800000),
        "vanishing product": (0x00000001, 0x00000001, 0x00000001, 0x00000001),
        "vanishing product alone": (0x00000001, 0x00000001, 0x80000000, 0x00000000),
        "vanishing product, subtracted": (0x00000001, 0x80000001, 0x00800000, 0x00800000),
        "subnormal sum": (0x00800000, 0x3F000000, 0x00000001, 0x00400001),
        "product above a subnormal addend": (0x1F800000, 0x1F800000, 0x80000001, 0x001FFFFF),
        "half the smallest cancelled, tie to zero": (0x0D800000, 0x26800000, 0x80000001, 0x80000000),
        "less than half the smallest cancelled": (0x0D400000, 0x26800000, 0x80000001, 0x80000001),
        "tie to even, up": (0x3F800000, 0x33800000, 0x3F800001, 0x3F800002),
        "just above the tie": (0x3F800001, 0x33800000, 0x3F800000, 0x3F800001),
        "2**-47 below the tie": (0x33800001, 0x3F7FFFFE, 0x3F800000, 0x3F800000),
    },
}
"""Operands and result, by what is special about them."""


@pytest.mark.parametrize("name", UNITS)
def test_known_results(run, name):
    """The first two operands in either order."""
    unit, known = UNITS[name], KNOWN[name]
    orders = [operands for *operands, _ in known.values()], [(b, a, *c) for a, b, *c, _ in known.values()]
    for operands in orders:
        got = run(unit.kind(1), [dict(zip(unit.ports, words, strict=True)) for words in operands])
        assert dict(zip(known, map(hex, got), strict=True)) == {special: hex(row[-1]) for special, row in known.items()}


@pytest.mark.parametrize("name", UNITS)
def test_latency_wrong(name):
    kind = UNITS[name].kind
    for latency in (0, max(kind.CUTS) + 1):
        with pytest.raises(ValueError, match=f"latency must be 1 to {max(kind.CUTS)}, not {latency}"):
            kind(latency)
