import numpy as np
import pytest

from neuroncore_rtl.golden import arith
from neuroncore_rtl.hdl.arith.round import Fp32Rounder
from neuroncore_rtl.spec.formats import FORMATS, FP32
from neuroncore_rtl.tb.stimulus import operands as stimulus
from neuroncore_rtl.tb.stimulus.one_bit import lone_fraction_bits
from tests.hdl.arith.units import run, shuffled
from tests.hdl.simulation import slow
from tests.oracles.known import ROUNDED, assert_known

PER_TARGET = 150
FIELDS = ("format", "stochastic", "value", "random")


@pytest.mark.parametrize(
    "latency", [1, *slow(*(n for n in Fp32Rounder.CUTS if n not in (1, max(Fp32Rounder.CUTS)))), max(Fp32Rounder.CUTS)]
)
def test_rounds_as_golden(rng, latency):
    parts = []
    for fmt in FORMATS.values():
        for mode in ("rne", "sr"):
            values, random = stimulus.round_cases(rng, fmt, mode, PER_TARGET)
            values = np.concatenate([stimulus.special_fp32(), values])
            if mode == "sr":
                random = np.concatenate([rng.integers(0, 1 << 32, len(values) - len(random), np.uint32), random])
            words = 0xFFFFFFFF if random is None else random
            parts.append((fmt.code, mode == "sr", values, words, arith.round_fp32(values, fmt, mode, random)))
    cases, expected = shuffled(rng, parts, FIELDS)
    assert run(Fp32Rounder(latency), cases, "word") == expected.tolist()


def test_rounds_to_nearest_without_random_bits(rng):
    parts = []
    for fmt in FORMATS.values():
        values, _ = stimulus.round_cases(rng, fmt, "rne", PER_TARGET)
        values = np.concatenate([stimulus.special_fp32(), values])
        parts.append((fmt.code, values, arith.round_fp32(values, fmt, "rne", None)))
    cases, expected = shuffled(rng, parts, ("format", "value"))
    assert run(Fp32Rounder(2, random=False), cases, "word") == expected.tolist()


def test_one_bit_decides(rng):
    values = lone_fraction_bits(FP32)
    values = np.concatenate([values, np.arange(512, dtype=np.uint32) << 23])
    rounded = ((fmt, arith.round_fp32(values, fmt, "rne", None)) for fmt in FORMATS.values())
    parts = [(fmt.code, False, values, 0xFFFFFFFF, words) for fmt, words in rounded]
    cases, expected = shuffled(rng, parts, FIELDS)
    assert run(Fp32Rounder(2), cases, "word") == expected.tolist()


def test_known_results():
    cases = [
        dict(zip(FIELDS, (fmt.code, random is not None, value, 0xFFFFFFFF if random is None else random), strict=True))
        for fmt, value, random, _ in ROUNDED.values()
    ]
    assert_known(ROUNDED, run(Fp32Rounder(1), cases, "word"))
