import numpy as np
import pytest

from neuroncore_rtl.golden import arith
from neuroncore_rtl.hdl.arith.round import Fp32Rounder
from neuroncore_rtl.spec.formats import FORMATS, FP32
from neuroncore_rtl.tb.stimulus import operands as stimulus
from neuroncore_rtl.tb.stimulus.one_bit import lone_fraction_bits
from tests.hdl.arith.units import run, shuffled
from tests.hdl.simulation import slow_if
from tests.oracles.hard import hard_to_round

PER_TARGET = 150
CUTS = Fp32Rounder.CUTS
FIELDS = ("format", "stochastic", "value", "random")


@pytest.mark.parametrize(
    ("latency", "draws"),
    slow_if(lambda n, draws: draws and n not in (1, max(CUTS)), [*((n, True) for n in CUTS), (2, False)]),
)
def test_rounds_as_golden(rng, latency, draws):
    parts = []
    for fmt in FORMATS.values():
        for mode in ("rne", "sr")[: 1 + draws]:
            values, random = stimulus.round_cases(rng, fmt, mode, PER_TARGET)
            values = np.concatenate([stimulus.special_fp32(), values])
            if mode == "sr":
                random = np.concatenate([rng.integers(0, 1 << 32, len(values) - len(random), np.uint32), random])
            words = 0xFFFFFFFF if random is None else random
            parts.append((fmt.code, mode == "sr", values, words, arith.round_fp32(values, fmt, mode, random)))
    cases, expected = shuffled(rng, parts, FIELDS)
    assert run(Fp32Rounder(latency, draws), cases, "word") == expected.tolist()


def test_one_bit_decides(rng):
    parts = []
    for fmt in FORMATS.values():
        every_exponent = np.arange(512, dtype=np.uint32) << 23
        values = np.concatenate([lone_fraction_bits(FP32), every_exponent, hard_to_round(fmt)])
        parts.append((fmt.code, False, values, 0xFFFFFFFF, arith.round_fp32(values, fmt, "rne", None)))
    cases, expected = shuffled(rng, parts, FIELDS)
    assert run(Fp32Rounder(2), cases, "word") == expected.tolist()
