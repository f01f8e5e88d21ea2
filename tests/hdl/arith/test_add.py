# amaranth: UnusedElaboratable=no

"""The FP32 adder and the conversion to integers, against golden; the adder in bulk, too."""

import numpy as np
import pytest
from amaranth import Module
from amaranth.lib import data

from neuroncore_rtl.golden import arith
from neuroncore_rtl.hdl.arith.add import Fp32Adder
from neuroncore_rtl.hdl.arith.integer import IntoInt
from neuroncore_rtl.spec.formats import FP32
from neuroncore_rtl.tb.harness.player import Playable, PlayerDevice, PlayerWork
from neuroncore_rtl.tb.harness.run import run as run_device
from neuroncore_rtl.tb.stimulus import operands as stimulus

BULK = 100_000


class AddUnit(Playable):
    """The adder with its inputs in one word."""

    def __init__(self, latency):
        self.adder = Fp32Adder(latency)
        super().__init__(data.StructLayout({"a": 32, "b": 32}), latency)

    def elaborate(self, platform):
        m = Module()
        m.submodules.adder = adder = self.adder
        m.d.comb += [adder.a.eq(self.word.a), adder.b.eq(self.word.b), self.result.eq(adder.out)]
        self.delay_valid(m)
        return m


def pairs(rng, count=300):
    """Pairs of FP32 patterns, 3 * count: special ones, random ones, cancelling, close and distant ones."""
    special = stimulus.special_fp32()
    chosen = rng.choice(special, (2, count))
    random = stimulus.random_fp32(rng, count), stimulus.random_fp32(rng, count)
    first = stimulus.random_fp32(rng, count)
    steps = rng.integers(-30, 31, count) * (1 << 23) * rng.integers(0, 2, count)
    steps += rng.choice([0, 0, 1, -1, 2, -2, 1 << 22, *(1 << rng.integers(0, 23, 8))], count)
    steps = steps.astype(np.uint32)
    close = first, (first ^ np.uint32(1 << 31)) + steps
    return np.concatenate([chosen, random, close], axis=1).astype(np.uint32)


def sums(a, b):
    return arith.add_fp32(a.view(np.float32), b.view(np.float32)).view(np.uint32)


@pytest.mark.parametrize("latency", sorted(Fp32Adder.CUTS))
def test_sum_is_that_of_golden(run, rng, latency):
    a, b = pairs(rng)
    got = run(Fp32Adder(latency), [{"a": x, "b": y} for x, y in zip(a, b, strict=True)])
    assert got == sums(a, b).tolist()


def test_sums_in_bulk_are_those_of_golden(rng):
    a, b = pairs(rng, BULK)
    outcome = run_device(PlayerDevice(AddUnit(2)), PlayerWork(fields={"a": a, "b": b}, bubbles=True))
    results, unknown = outcome.memories["results"], outcome.memories["unknown"]
    np.testing.assert_array_equal(results, sums(a, b))
    assert len(results) == 3 * BULK and not len(unknown)


@pytest.mark.parametrize(
    ("a", "b", "total"),
    [
        pytest.param(0x80000000, 0x80000000, 0x80000000, id="both zeros negative"),
        pytest.param(0x00000000, 0x80000000, 0x00000000, id="zeros of both signs"),
        pytest.param(0xBF800000, 0x3F800000, 0x00000000, id="cancellation is +0"),
        pytest.param(0x7F800000, 0xFF800000, FP32.nan, id="Inf - Inf"),
        pytest.param(0xFF800000, 0xFF800000, 0xFF800000, id="-Inf - Inf"),
        pytest.param(0xFFC00001, 0x3F800000, FP32.nan, id="NaN is canonical"),
        pytest.param(0x7F800000, 0x7F800001, FP32.nan, id="Inf + NaN"),
        pytest.param(0x7F7FFFFF, 0x73000000, 0x7F800000, id="tie at the largest overflows"),
        pytest.param(0x7F7FFFFF, 0x72FFFFFF, 0x7F7FFFFF, id="just below the tie at the largest"),
        pytest.param(0x00800000, 0x80000001, 0x007FFFFF, id="smallest normal minus smallest subnormal"),
        pytest.param(0x007FFFFF, 0x00000001, 0x00800000, id="subnormals carry into the smallest normal"),
        pytest.param(0x3F800000, 0x33800000, 0x3F800000, id="tie to even, down"),
        pytest.param(0x3F800001, 0x33800000, 0x3F800002, id="tie to even, up"),
        pytest.param(0x3F800000, 0x33800001, 0x3F800001, id="just above the tie"),
        pytest.param(0x4B800000, 0xB3800000, 0x4B800000, id="far smaller, subtracted"),
    ],
)
def test_known_sum(run, a, b, total):
    assert run(Fp32Adder(1), [{"a": a, "b": b}, {"a": b, "b": a}]) == [total, total]


def test_latency_wrong():
    with pytest.raises(ValueError, match="latency must be 1 to 4, not 5"):
        Fp32Adder(5)


def test_integer_is_exact(run, rng):
    edges = [0, 1, 2, 3, (1 << 23) - 1, 1 << 23, (1 << 24) - 1]
    integers = np.array([*edges, *(-edge for edge in edges), *rng.integers(-(1 << 24) + 1, 1 << 24, 500)])
    integers = np.concatenate([integers, integers[-500:] >> rng.integers(0, 24, 500)])
    words = integers.astype(np.float32).view(np.uint32)
    assert run(IntoInt(), [{"value": word} for word in words]) == (integers & 0xFFFFFFFF).tolist()


def test_both_zeros_are_integer_zero(run):
    assert run(IntoInt(), [{"value": 0}, {"value": 0x80000000}]) == [0, 0]
