"""Decoding: every code of every 8- and 16-bit format and of TF32 against libraries, and the halves of FP32."""

import numpy as np
import pytest

from neuroncore_rtl.golden.arith import canonical, decode, operand, storage_dtype
from neuroncore_rtl.spec.formats import (
    BF16,
    FORMATS,
    FP16,
    FP32,
    INT8,
    INT16,
    INT32,
    MAC_FORMATS,
    TF32,
    FloatFormat,
    Format,
)
from neuroncore_rtl.tb.check.oracles import softfloat
from neuroncore_rtl.tb.check.oracles.compare import assert_same_bits
from neuroncore_rtl.tb.stimulus.operands import random_fp32, special_fp32
from tests.oracles.libraries import GFLOAT, ML_DTYPES, fp32_values, gfloat_decode, ml_dtypes_decode

SEED = 11


def every_code(fmt: Format) -> np.ndarray:
    step = 1 << getattr(fmt, "padding_bits", 0)
    return np.arange(0, 1 << fmt.bits, step).astype(storage_dtype(fmt))


@pytest.mark.parametrize("fmt", ML_DTYPES)
def test_every_code_decodes_as_ml_dtypes_says(fmt: FloatFormat):
    codes = every_code(fmt)
    assert len(codes) == 1 << fmt.bits
    assert_same_bits(decode(codes, fmt), ml_dtypes_decode(codes, fmt), codes)


@pytest.mark.parametrize("fmt", GFLOAT)
def test_every_code_decodes_as_gfloat_says(fmt: FloatFormat):
    codes = every_code(fmt)
    assert len(codes) == 1 << (fmt.bits - fmt.padding_bits)
    assert_same_bits(decode(codes, fmt), gfloat_decode(codes, fmt), codes)


def test_every_fp16_code_decodes_as_softfloat_says():
    codes = every_code(FP16)
    theirs = canonical(softfloat.f16_to_f32(codes)).view(np.float32)
    assert_same_bits(decode(codes, FP16), theirs, codes)


@pytest.mark.parametrize("fmt", [INT8, INT16])
def test_every_integer_code_is_twos_complement(fmt):
    codes = every_code(fmt)
    assert_same_bits(decode(codes, fmt), codes.view(f"int{fmt.bits}").astype(np.float64), codes)


def test_int32_is_twos_complement():
    codes = np.array([0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF], np.uint32)
    assert_same_bits(decode(codes, INT32), np.array([0, 1, 2**31 - 1, -(2**31), -1], np.float64), codes)


def test_fp32_decodes_as_the_processor_does():
    codes = np.concatenate([special_fp32(), random_fp32(np.random.default_rng(SEED), 100_000)])
    assert_same_bits(decode(codes, FP32), fp32_values(codes), codes)


def test_tf32_ignores_its_padding_bits_save_to_tell_nan_from_infinity():
    assert_same_bits(decode(np.uint32([0x3F800000 | 0x1FFF, 0x00001FFF]), TF32), np.array([1.0, 0.0]))
    assert np.isnan(decode(np.uint32(0x7F800001), TF32))
    assert np.isposinf(decode(np.uint32(0x7F800000), TF32))


@pytest.mark.parametrize("fmt", [f for f in FORMATS.values() if f.is_float])
def test_canonical_replaces_every_nan_and_nothing_else(fmt: FloatFormat):
    codes = every_code(fmt) if fmt.bits <= 16 else random_fp32(np.random.default_rng(SEED), 100_000)
    is_nan = np.isnan(decode(codes, fmt))
    assert is_nan.any()
    assert_same_bits(canonical(codes, fmt), np.where(is_nan, fmt.nan, codes), codes)


def significand_bits(value: np.ndarray) -> int:
    """Return the most significand bits that any finite value needs."""
    value = value[np.isfinite(value)]
    scaled = np.ldexp(np.frexp(np.abs(value).astype(np.float64))[0], 24).astype(np.int64)
    trailing = np.array([0 if s == 0 else int(s & -s).bit_length() - 1 for s in np.unique(scaled)])
    return 24 - int(trailing[np.unique(scaled) > 0].min())


@pytest.mark.parametrize("fmt", MAC_FORMATS)
def test_operands_of_single_pass_formats_are_their_values_in_12_bits(fmt: Format):
    codes = every_code(fmt)
    value = operand(codes, fmt)
    assert value.dtype == np.float32
    assert_same_bits(value, decode(codes, fmt), codes)
    assert significand_bits(value) <= 12


def test_fp32_halves_have_12_bits_and_add_up_to_the_value():
    codes = np.concatenate([special_fp32(), random_fp32(np.random.default_rng(SEED), 200_000)])
    value = fp32_values(codes)
    finite = np.isfinite(value)
    hi, lo = operand(codes, FP32, "hi"), operand(codes, FP32, "lo")
    assert significand_bits(hi) <= 12 and significand_bits(lo) <= 12
    total = hi[finite].astype(np.float64) + lo[finite].astype(np.float64)
    assert_same_bits(total, value[finite], codes[finite])
    assert np.array_equal(np.signbit(lo), codes >> 31 == 1)
    assert np.array_equal(np.signbit(hi[finite]), np.signbit(value[finite]))
    assert np.array_equal(hi == 0, value == 0), "only a zero has a zero high half, a subnormal has not"
    normal = finite & (np.abs(value) >= 2.0**-126)
    assert_same_bits(hi[normal].view(np.uint32), codes[normal] & 0xFFFFF000, codes[normal])


def test_fp32_specials_travel_in_the_high_half_only():
    codes = np.uint32([0x7F800000, 0xFF800000, 0x7FC00000, 0x7F800001, 0xFF800FFF])
    assert_same_bits(operand(codes, FP32, "hi"), fp32_values(codes), codes)
    assert_same_bits(operand(codes, FP32, "lo"), np.float32([0.0, -0.0, 0.0, 0.0, -0.0]), codes)


def test_scalars_and_shapes_pass_through():
    assert decode(np.uint16(0x3F80), BF16) == 1.0
    assert operand(np.full((2, 3, 1), 0x3F80, np.uint16), BF16).shape == (2, 3, 1)


@pytest.mark.parametrize(
    "fmt, half, message",
    [
        (FP32, None, "half must be 'hi' or 'lo' for fp32, not None"),
        (BF16, "hi", "half must be None for bf16, not 'hi'"),
        (INT16, None, "format must be fp32 or one of .*, not 'int16'"),
    ],
)
def test_operand_wrong(fmt, half, message):
    with pytest.raises(ValueError, match=message):
        operand(np.uint32(0), fmt, half)
