# amaranth: UnusedElaboratable=no

"""The rounding unit against golden, every format, both modes, at every latency."""

import numpy as np
import pytest

from neuroncore_rtl.golden import arith
from neuroncore_rtl.hdl.arith.round import Fp32Rounder
from neuroncore_rtl.spec.formats import BF16, FORMATS, FP8E5M2, FP32, INT8, INT32
from neuroncore_rtl.tb.stimulus import operands as stimulus

PER_TARGET = 150


def case(fmt, value, random=None):
    """One case of the unit; nearest even without a random word."""
    return {
        "format": fmt.code,
        "value": int(value),
        "stochastic": random is not None,
        "random": 0xFFFFFFFF if random is None else int(random),
    }


@pytest.mark.parametrize("latency", sorted(Fp32Rounder.CUTS))
def test_rounds_as_golden(run, rng, latency):
    cases, expected = [], []
    for fmt in FORMATS.values():
        for mode in ("rne", "sr"):
            values, random = stimulus.round_cases(rng, fmt, mode, PER_TARGET)
            special = stimulus.special_fp32()
            values = np.concatenate([special, values])
            if mode == "sr":
                random = np.concatenate([rng.integers(0, 1 << 32, len(special), np.uint32), random])
            words = random if mode == "sr" else [None] * len(values)
            cases += [case(fmt, value, word) for value, word in zip(values, words, strict=True)]
            expected += arith.round_fp32(values, fmt, mode, random).tolist()
    order = rng.permutation(len(cases))
    got = run(Fp32Rounder(latency), [cases[i] for i in order], "word")
    assert got == [expected[i] for i in order]


@pytest.mark.parametrize(
    ("fmt", "value", "random", "word"),
    [
        pytest.param(BF16, 0x3F808000, None, 0x3F80, id="tie to even, down"),
        pytest.param(BF16, 0x3F818000, None, 0x3F82, id="tie to even, up"),
        pytest.param(BF16, 0x3F808000, 0x80000000, 0x3F81, id="stochastic, half and a half carry"),
        pytest.param(BF16, 0x3F808000, 0x7FFFFFFF, 0x3F80, id="stochastic, one less does not"),
        pytest.param(BF16, 0x3F800000, 0xFFFFFFFF, 0x3F80, id="stochastic, representable stays"),
        pytest.param(BF16, 0x00000001, 0xFFFF0000, 0x0001, id="stochastic, smallest subnormal up"),
        pytest.param(BF16, 0x80000001, 0xFFFEFFFF, 0x8000, id="stochastic, underflow keeps the sign"),
        pytest.param(BF16, 0x7F7FFFFF, None, 0x7F80, id="overflow by rounding"),
        pytest.param(FP8E5M2, 0x37800000, None, 0x01, id="smallest subnormal"),
        pytest.param(FP8E5M2, 0x37000000, None, 0x00, id="tie at half of it"),
        pytest.param(FP8E5M2, 0x37000001, None, 0x01, id="just above half of it"),
        pytest.param(FP8E5M2, 0x387FFFFF, None, 0x04, id="up into the smallest normal"),
        pytest.param(FP8E5M2, 0x27800000, 0xFFFFFFFF, 0x01, id="stochastic, 2**-32 of a place is seen"),
        pytest.param(FP8E5M2, 0x277FFFFF, 0xFFFFFFFF, 0x00, id="stochastic, less than that is cut"),
        pytest.param(FP32, 0xFFC12345, None, FP32.nan, id="NaN is canonical"),
        pytest.param(FP32, 0x00000001, 0xFFFFFFFF, 0x00000001, id="identity"),
        pytest.param(INT8, 0x42FF0000, None, 0x7F, id="127.5 saturates"),
        pytest.param(INT8, 0xC3008000, None, 0x80, id="-128.5 ties to the even end"),
        pytest.param(INT8, 0xC3010000, None, 0x80, id="-129 saturates"),
        pytest.param(INT8, 0xBF000000, None, 0x00, id="-0.5 ties to zero"),
        pytest.param(INT8, 0x7FC00000, None, 0x00, id="NaN is integer zero"),
        pytest.param(INT32, 0x7F800000, None, 0x7FFFFFFF, id="Inf saturates"),
        pytest.param(INT32, 0xFF800000, 0, 0x80000000, id="-Inf saturates"),
        pytest.param(INT32, 0xCF000000, None, 0x80000000, id="-2**31 is exact"),
        pytest.param(INT32, 0x4F000000, None, 0x7FFFFFFF, id="2**31 saturates"),
    ],
)
def test_known_result(run, fmt, value, random, word):
    assert run(Fp32Rounder(1), [case(fmt, value, random)], "word") == [word]


def test_latency_wrong():
    with pytest.raises(ValueError, match="latency must be 1 to 4, not 0"):
        Fp32Rounder(0)
