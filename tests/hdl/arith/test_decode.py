import numpy as np
import pytest

from neuroncore_rtl.golden import arith
from neuroncore_rtl.hdl.arith.decode import EdgeDecoder
from neuroncore_rtl.hdl.arith.operand import OPERAND_BIAS, SIGNIFICAND_BITS, Operand
from neuroncore_rtl.spec.formats import BF16, FP32, INT8, MATMUL_FORMATS, TF32, matmul_formats
from neuroncore_rtl.tb.check.oracles.compare import assert_same_bits
from neuroncore_rtl.tb.stimulus import operands as stimulus
from tests.hdl.arith.units import run
from tests.hdl.simulation import slow_if

ABSENT = Operand().const({"inf": 1, "nan": 1}).as_bits()
EVERY_FORMAT = pytest.mark.parametrize("fmt", MATMUL_FORMATS)
HALVES = pytest.mark.parametrize("half", (0, 1))


def codes(rng, fmt):
    if fmt.bits == 8:
        return np.arange(256)
    return np.concatenate([stimulus.corners(fmt), stimulus.random_codes(rng, fmt, 1500)])


def decode(words, fmt, half=0, present=1, skip_zero=0, significand_bits=SIGNIFICAND_BITS, latency=0):
    case = {"format": fmt.code, "half": half, "present": present, "skip_zero": skip_zero}
    return run(EdgeDecoder(significand_bits, latency), [{"word": word, **case} for word in words])


def value(bits):
    operand = Operand().from_bits(bits)
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


def values(words, fmt, half):
    return np.array([value(bits) for bits in decode(words, fmt, half)])


@HALVES
@EVERY_FORMAT
def test_operand_is_that_of_golden(rng, fmt, half):
    words = codes(rng, fmt)
    if fmt == FP32:
        expected = arith.operand(words, fmt, ("hi", "lo")[half])
    elif half:
        expected = np.where(words >> (fmt.bits - 1), -0.0, 0.0)
    else:
        expected = arith.operand(words, fmt)
    assert_same_bits(values(words, fmt, half), expected, words)


def test_fp32_high_half_is_zero_only_where_the_value_is(rng):
    """If a subnormal's high half were zero, its product with an infinity would be NaN in the pass of high halves."""
    words = codes(rng, FP32)
    high, low = (values(words, FP32, half) for half in (0, 1))
    whole = arith.decode(words, FP32)
    np.testing.assert_array_equal(high == 0, whole == 0)
    assert_same_bits(high + low, whole, words)


@EVERY_FORMAT
def test_element_that_is_not_present_is_absent(rng, fmt):
    assert set(decode(codes(rng, fmt)[:100], fmt, present=0)) == {ABSENT}


@HALVES
@EVERY_FORMAT
def test_zero_is_skipped_on_request_and_nothing_else(rng, fmt, half):
    words = codes(rng, fmt)
    kept, skipped = decode(words, fmt, half), decode(words, fmt, half, skip_zero=1)
    assert skipped == [ABSENT if value(bits) == 0 else bits for bits in kept]
    assert ABSENT in skipped


@pytest.mark.parametrize("fmt", matmul_formats(8))
def test_operand_of_fewer_bits_lacks_the_lowest_which_are_zero(rng, fmt):
    words, lacking = codes(rng, fmt), SIGNIFICAND_BITS - 8
    narrow, wide = decode(words, fmt, skip_zero=1, significand_bits=8), decode(words, fmt, skip_zero=1)
    assert [bits << lacking for bits in narrow] == wide and ABSENT in wide


@pytest.mark.parametrize("latency", slow_if(lambda n: n != max(EdgeDecoder.CUTS), filter(None, EdgeDecoder.CUTS)))
@HALVES
@EVERY_FORMAT
def test_registers_change_nothing(rng, fmt, half, latency):
    words = codes(rng, fmt)[:400]
    assert decode(words, fmt, half, latency=latency) == decode(words, fmt, half)


def test_upper_bits_of_the_word_are_ignored():
    for fmt, word in ((BF16, 0x3F80), (INT8, 0x80)):
        assert len(set(decode([word, word | 0xFFFF << 16], fmt))) == 1


def test_tf32_padding_tells_a_nan_from_an_infinity():
    padded = [TF32.infinity | 1 << bit for bit in range(TF32.padding_bits)]
    infinity, *others = (Operand().from_bits(bits) for bits in decode([TF32.infinity, *padded], TF32))
    assert (infinity.inf, infinity.nan) == (1, 0)
    assert {(nan.inf, nan.nan) for nan in others} == {(0, 1)}
