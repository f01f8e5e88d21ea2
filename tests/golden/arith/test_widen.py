"""Codes to FP32 and to integers: every code of the narrow formats against libraries; saturation against Python."""

import numpy as np
import pytest

from neuroncore_rtl.golden.arith import canonical, decode, integers, saturate, storage_dtype, widen
from neuroncore_rtl.spec.formats import BF16, FORMATS, FP8E3M4, FP8E4M3, FP8E5M2, FP16, FP32, INT8, INT16, INT32, TF32
from neuroncore_rtl.tb.check.oracles import softfloat
from neuroncore_rtl.tb.check.oracles.compare import assert_same_bits
from neuroncore_rtl.tb.stimulus.operands import random_fp32, special_fp32
from tests.oracles.libraries import gfloat_decode, ml_dtypes_decode

SEED = 22
NARROW = (BF16, FP16, FP8E4M3, FP8E5M2, FP8E3M4)
INTEGERS = (INT8, INT16, INT32)


def every_code(fmt):
    return np.arange(1 << fmt.bits).astype(storage_dtype(fmt))


@pytest.mark.parametrize("fmt", NARROW)
def test_every_code_widens_as_ml_dtypes_says(fmt):
    codes = every_code(fmt)
    with np.errstate(invalid="ignore"):  # a signalling NaN is a NaN
        theirs = canonical(ml_dtypes_decode(codes, fmt).astype(np.float32).view(np.uint32))
    assert len(codes) == 1 << fmt.bits
    assert_same_bits(widen(codes, fmt), theirs, codes)


def test_every_fp16_code_widens_as_softfloat_says():
    codes = every_code(FP16)
    assert_same_bits(widen(codes, FP16), canonical(softfloat.f16_to_f32(codes)), codes)


def test_fp32_changes_in_its_nans_only(rng):
    codes = np.concatenate([special_fp32(), random_fp32(rng, 100_000)])
    assert_same_bits(widen(codes, FP32), np.where(np.isnan(decode(codes, FP32)), FP32.nan, codes), codes)


def test_tf32_widens_as_gfloat_says(rng):
    codes = np.concatenate([special_fp32(), random_fp32(rng, 100_000)]) & np.uint32(0xFFFFE000)
    theirs = canonical(gfloat_decode(codes, TF32).astype(np.float32).view(np.uint32))
    assert_same_bits(widen(codes, TF32), theirs, codes)


def test_tf32_ignores_its_padding_bits_save_to_tell_nan_from_infinity():
    codes = np.uint32([0x3F801FFF, 0x80001FFF, 0x7F800000, 0x7F800001, 0xFF801FFF])
    assert_same_bits(widen(codes, TF32), np.uint32([0x3F800000, 0x80000000, 0x7F800000, TF32.nan, TF32.nan]), codes)


@pytest.mark.parametrize("fmt", (INT8, INT16))
def test_every_integer_code_is_exact(fmt):
    codes = every_code(fmt)
    values = [code - (code >> (fmt.bits - 1) << fmt.bits) for code in codes.tolist()]
    assert integers(codes, fmt).tolist() == values
    assert widen(codes, fmt).view(np.float32).astype(np.int64).tolist() == values


def test_int32_rounds_to_nearest_even(rng):
    values = np.concatenate(
        [
            np.array([0, -1, 2**24 + 1, 2**24 + 3, -(2**24) - 1, 2**31 - 1, -(2**31), 2**31 - 64, 2**31 - 65]),
            rng.integers(-(1 << 31), 1 << 31, 50_000) >> rng.integers(0, 32, 50_000),
        ]
    )
    codes = values.astype(np.int32).view(np.uint32)
    assert_same_bits(integers(codes, INT32), values, codes)
    # float64 holds every INT32, so that its cast is the only rounding.
    assert_same_bits(widen(codes, INT32), values.astype(np.float64).astype(np.float32).view(np.uint32), codes)
    assert widen(np.uint32(2**24 + 1), INT32) == 0x4B800000
    assert widen(np.uint32(2**24 + 3), INT32) == 0x4B800002


@pytest.mark.parametrize("fmt", INTEGERS)
def test_saturation_is_that_of_python(rng, fmt):
    borders = np.add.outer([-1, 0, 1], [fmt.min, 0, fmt.max]).ravel()
    values = np.concatenate([borders, rng.integers(-(1 << 31), 1 << 31, 5_000) >> rng.integers(0, 32, 5_000)])
    values = values[(values >= INT32.min) & (values <= INT32.max)]
    codes = saturate(values.astype(np.int32), fmt)
    assert codes.dtype == storage_dtype(fmt)
    assert codes.tolist() == [min(max(value, fmt.min), fmt.max) % (1 << fmt.bits) for value in values.tolist()]


@pytest.mark.parametrize("fmt", FORMATS.values())
def test_scalars_and_shapes_pass_through(fmt):
    codes = np.zeros((2, 3, 1), storage_dtype(fmt))
    assert widen(codes, fmt).shape == (2, 3, 1)
    assert widen(codes, fmt).dtype == np.uint32
    assert widen(codes[0, 0, 0], fmt) == 0


@pytest.mark.parametrize("function", (integers, saturate))
def test_format_wrong(function):
    with pytest.raises(ValueError, match="format must be an integer format, not 'bf16'"):
        function(np.zeros(1, np.uint16), BF16)
