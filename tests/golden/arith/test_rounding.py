"""Rounding against ml_dtypes, gfloat, numpy's rint and rational numbers; to odd, against exact integers."""

import numpy as np
import pytest

from neuroncore_rtl.golden.arith import canonical, decode, round_fp32, round_to_odd
from neuroncore_rtl.spec.formats import BF16, FORMATS
from neuroncore_rtl.tb.check.oracles.compare import assert_same_bits
from neuroncore_rtl.tb.stimulus.operands import round_cases, special_fp32
from tests.oracles import exact
from tests.oracles.hard import hard_to_round
from tests.oracles.libraries import GFLOAT, ML_DTYPES, fp32_values, gfloat_round, ml_dtypes_round
from tests.oracles.words import words

SEED = 12
INTEGERS = tuple(f for f in FORMATS.values() if not f.is_float)
FLOATS = [f for f in FORMATS.values() if f.is_float]
TAILS = (0, 1, 0x0FFF, 0x1000, 0x1001, 0x2FFF, 0x3000, 0x3001, 0x7FFF, 0x8000, 0x8001, 0xFFFF)
"""Lower 16 bits of FP32 patterns at, just below and just above the ties of a 7- or 10-bit mantissa."""


@pytest.mark.parametrize("fmt", ML_DTYPES)
def test_every_high_half_with_tie_tails_and_random_cases_round_as_ml_dtypes_does(fmt, rng):
    value = (np.arange(1 << 16, dtype=np.uint32)[:, np.newaxis] << 16 | np.uint32(TAILS)).ravel()
    assert len(value) == 12 << 16
    value = np.concatenate([value, round_cases(rng, fmt, "rne", 200_000)[0], hard_to_round(fmt)])
    assert_same_bits(round_fp32(value, fmt), canonical(ml_dtypes_round(value, fmt), fmt), value)


@pytest.mark.parametrize("mode", ["rne", "sr"])
@pytest.mark.parametrize("fmt", GFLOAT)
def test_random_cases_round_as_gfloat_does(fmt, mode, rng):
    value, random = round_cases(rng, fmt, mode, 200_000)
    assert_same_bits(decode(round_fp32(value, fmt, mode, random), fmt), gfloat_round(value, fmt, random), value)


@pytest.mark.parametrize("fmt", INTEGERS)
def test_integers_are_rint_then_clip(fmt, rng):
    value = np.concatenate([round_cases(rng, fmt, "rne", 200_000)[0], hard_to_round(fmt)])
    theirs = np.clip(np.rint(np.nan_to_num(fp32_values(value), nan=0.0)), fmt.min, fmt.max).astype(fmt.name)
    assert_same_bits(round_fp32(value, fmt), theirs.view(f"uint{fmt.bits}"), value)


@pytest.mark.parametrize("mode", ["rne", "sr"])
@pytest.mark.parametrize("fmt", FORMATS.values())
def test_random_and_hard_cases_round_as_rational_numbers_do(fmt, mode, rng):
    value, random = round_cases(rng, fmt, mode, 5_000)
    hard = np.concatenate([hard_to_round(fmt), special_fp32()])
    ends = np.uint32([0, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF])
    value = np.concatenate([value, np.repeat(hard, len(ends))])
    random = None if random is None else np.concatenate([random, np.tile(ends, len(hard))])
    draws = [None] * len(value) if random is None else random.tolist()
    theirs = [exact.round_exactly(float(x), fmt, draw) for x, draw in zip(fp32_values(value), draws, strict=True)]
    assert_same_bits(decode(round_fp32(value, fmt, mode, random), fmt), np.array(theirs), value)


@pytest.mark.parametrize(("mode", "random"), [("rne", None), ("sr", np.uint32(0xFFFFFFFF))])
@pytest.mark.parametrize("fmt", FLOATS)
def test_specials_of_float_targets(fmt, mode, random):
    value = np.concatenate([words([np.inf, -np.inf, 0.0, -0.0]), np.uint32([0x7F800001, 0xFFC00000])])
    sign = 1 << (fmt.bits - 1)
    expected = [fmt.infinity, sign | fmt.infinity, 0, sign, fmt.nan, fmt.nan]
    assert round_fp32(value, fmt, mode, random).tolist() == expected


def test_scalars_and_shapes_pass_through():
    assert round_fp32(np.uint32(0x3F800000), BF16) == 0x3F80
    assert round_fp32(np.zeros((2, 1), np.uint32), BF16, "sr", np.zeros(3, np.uint32)).shape == (2, 3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("up",), "mode must be one of rne, sr, not 'up'"),
        (("sr",), "random must be given for sr, not None"),
        (("rne", 1), "random must be None for rne, not 1"),
    ],
)
def test_mode_or_random_wrong(arguments, message):
    with pytest.raises(ValueError, match=message):
        round_fp32(np.uint32(0), BF16, *arguments)


def odd_of(number: int) -> int:
    """Return a positive integer cut to 24 bits; the last of them is set if a set bit is lost."""
    lost = max(number.bit_length() - 24, 0)
    return (number >> lost | (number % (1 << lost) != 0)) << lost


@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.int64, np.uint64])
def test_integers(dtype, rng):
    bits = np.iinfo(dtype).bits - np.issubdtype(dtype, np.signedinteger)
    values = rng.integers(0, 1 << bits, 2000, dtype=np.uint64) >> rng.integers(0, bits, 2000, dtype=np.uint64)
    edges = np.array([0, 1, (1 << 24) - 1, (1 << 24) + 1, (1 << bits) - 1], np.uint64)
    values = np.concatenate([values, edges]).astype(dtype)
    expected = np.array([odd_of(int(value)) for value in values], np.float32)
    assert np.array_equal(round_to_odd(values).view(np.float32), expected)
    if np.issubdtype(dtype, np.signedinteger):
        assert np.array_equal(round_to_odd(-values).view(np.float32), -expected)
    assert (expected != values.astype(np.float32)).sum() > 100


def test_floats(rng):
    whole = rng.integers(1 << 52, 1 << 53, 2000)
    scale = rng.integers(-120, 60, 2000)
    expected = np.ldexp(np.array([odd_of(int(one)) for one in whole], np.float32), scale)
    assert np.array_equal(round_to_odd(np.ldexp(whole.astype(float), scale)).view(np.float32), expected)
    special = np.array([np.inf, -np.inf, -0.0, 1e300, -1e300, 2.0**-149, 1e-300, -1e-300, 1.75 * 2.0**-149])
    expected = [np.inf, -np.inf, -0.0, 3.4028235e38, -3.4028235e38, 1.4e-45, 1.4e-45, -1.4e-45, 1.4e-45]
    assert round_to_odd(special).tolist() == np.array(expected, np.float32).view(np.uint32).tolist()
    assert np.isnan(round_to_odd(np.array([np.nan])).view(np.float32)).all()


def test_a_second_rounding_sees_no_false_tie():
    tie = (1 << 30) + (1 << 22)
    words = round_to_odd(np.array([tie - 1, tie, tie + 1, -tie - 1]))
    assert round_fp32(words, BF16).tolist() == [0x4E80, 0x4E80, 0x4E81, 0xCE81]
