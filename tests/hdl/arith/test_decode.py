"""The edge decoder against golden, every code of the narrow formats."""

import numpy as np
import pytest

from neuroncore_rtl.golden import arith
from neuroncore_rtl.hdl.arith.decode import EdgeDecoder
from neuroncore_rtl.hdl.arith.operand import OPERAND_BIAS, SIGNIFICAND_BITS, Operand
from neuroncore_rtl.spec.formats import BF16, FP32, INT8, MAC_FORMATS, MATMUL_FORMATS, TF32
from neuroncore_rtl.tb.stimulus import operands as stimulus

ABSENT = Operand.const({"inf": 1, "nan": 1}).as_bits()


def codes(rng, fmt):
    """Every code of 8 bits; of wider formats the special ones and random ones."""
    if fmt.bits == 8:
        return np.arange(256)
    special = stimulus.special_fp32() if fmt == FP32 else stimulus.special_codes(fmt)
    return np.concatenate([special, stimulus.random_codes(rng, fmt, 1500)])


def decoded(run, words, fmt, half=0, present=1, skip_zero=0):
    """What the decoder makes of words, as integers."""
    case = {"format": fmt.code, "half": half, "present": present, "skip_zero": skip_zero}
    return run(EdgeDecoder(), [{"word": word, **case} for word in words])


def value(bits):
    """The number that an operand stands for; checks that it is normalised."""
    operand = Operand.from_bits(bits)
    assert not (operand.inf and operand.nan), "absent"
    sign = -1.0 if operand.sign else 1.0
    if operand.inf or operand.nan:
        assert operand.significand, "an infinity must not look like a zero"
        return sign * (np.inf if operand.inf else np.nan)
    if operand.significand == 0:
        assert operand.exponent == 0
        return sign * 0.0
    assert operand.significand >> (SIGNIFICAND_BITS - 1)
    return sign * operand.significand * 2.0 ** (operand.exponent - OPERAND_BIAS - SIGNIFICAND_BITS + 1)


def assert_same(got, expected):
    """Equal values, signs of zeros included; any NaN equals any other."""
    got, expected = np.asarray(got, np.float64), np.asarray(expected, np.float64)
    np.testing.assert_array_equal(got, expected)
    known = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(got[known]), np.signbit(expected[known]))


@pytest.mark.parametrize("fmt", MAC_FORMATS, ids=lambda fmt: fmt.name)
def test_operand_is_the_value(run, rng, fmt):
    words = codes(rng, fmt)
    assert_same([value(bits) for bits in decoded(run, words, fmt)], arith.operand(words, fmt))


@pytest.mark.parametrize("fmt", MAC_FORMATS, ids=lambda fmt: fmt.name)
def test_low_half_of_a_narrow_format_is_a_zero_of_the_same_sign(run, rng, fmt):
    words = codes(rng, fmt)
    sign = [-1.0 if word >> (fmt.bits - 1) else 1.0 for word in words]
    assert_same([value(bits) for bits in decoded(run, words, fmt, half=1)], np.copysign(0.0, sign))


@pytest.mark.parametrize("half", ("hi", "lo"))
def test_fp32_halves_are_those_of_golden(run, rng, half):
    words = codes(rng, FP32)
    got = [value(bits) for bits in decoded(run, words, FP32, half=("hi", "lo").index(half))]
    assert_same(got, arith.operand(words, FP32, half))


def test_fp32_high_half_is_zero_only_where_the_value_is(run, rng):
    """Lest an infinity times a subnormal becomes NaN in the pass hi * hi."""
    words = codes(rng, FP32)
    high = np.array([value(bits) for bits in decoded(run, words, FP32)])
    low = np.array([value(bits) for bits in decoded(run, words, FP32, half=1)])
    whole = arith.decode(words, FP32)
    np.testing.assert_array_equal(high == 0, whole == 0)
    assert_same(high + low, whole)


@pytest.mark.parametrize("fmt", MATMUL_FORMATS, ids=lambda fmt: fmt.name)
def test_element_that_is_not_present_is_absent(run, rng, fmt):
    assert set(decoded(run, codes(rng, fmt)[:100], fmt, present=0)) == {ABSENT}


@pytest.mark.parametrize("half", (0, 1))
@pytest.mark.parametrize("fmt", MATMUL_FORMATS, ids=lambda fmt: fmt.name)
def test_zero_is_skipped_on_request_and_nothing_else(run, rng, fmt, half):
    words = codes(rng, fmt)
    kept, skipped = decoded(run, words, fmt, half), decoded(run, words, fmt, half, skip_zero=1)
    assert skipped == [ABSENT if value(bits) == 0 else bits for bits in kept]
    assert ABSENT in skipped


def test_upper_bits_of_the_word_are_ignored(run):
    for fmt, word in ((BF16, 0x3F80), (INT8, 0x80)):
        assert len(set(decoded(run, [word, word | 0xFFFF << 16], fmt))) == 1


def test_tf32_padding_tells_a_nan_from_an_infinity(run):
    infinity, nan = (Operand.from_bits(bits) for bits in decoded(run, [TF32.infinity, TF32.infinity | 1], TF32))
    assert (infinity.inf, infinity.nan, nan.inf, nan.nan) == (1, 0, 0, 1)
