"""Decoding and widening of all formats against libraries."""

import numpy as np
import pytest

from neuroncore_rtl.golden.arith import canonical, decode, integers, operand, saturate, storage_dtype, widen
from neuroncore_rtl.spec import formats
from neuroncore_rtl.tb.check.oracles import softfloat
from neuroncore_rtl.tb.check.oracles.compare import assert_same_bits
from neuroncore_rtl.tb.stimulus.operands import random_fp32, special_fp32
from tests.oracles.libraries import GFLOAT, ML_DTYPES, fp32_values, gfloat_decode, ml_dtypes_decode
from tests.oracles.words import every_code

SEED = 11


def fp32_codes(rng, count):
    return np.concatenate([special_fp32(), random_fp32(rng, count)])


def assert_values(codes, fmt, values):
    assert_same_bits(decode(codes, fmt), values, codes)
    with np.errstate(invalid="ignore"):  # a signalling NaN is a NaN
        fp32 = canonical(values.astype(np.float32).view(np.uint32))
    assert_same_bits(widen(codes, fmt), fp32, codes)


def softfloat_decode(codes, fmt):
    return fp32_values(canonical(softfloat.f16_to_f32(codes)))


LIBRARIES = {ml_dtypes_decode: ML_DTYPES, gfloat_decode: GFLOAT, softfloat_decode: (formats.FP16,)}


@pytest.mark.parametrize(("theirs", "fmt"), [(theirs, fmt) for theirs, known in LIBRARIES.items() for fmt in known])
def test_every_code_is_what_a_library_says(theirs, fmt):
    codes = every_code(fmt)
    assert len(codes) == 1 << (fmt.bits - fmt.padding_bits)
    assert_values(codes, fmt, theirs(codes, fmt))


@pytest.mark.parametrize("fmt", [formats.INT8, formats.INT16, formats.UINT8, formats.UINT16])
def test_every_integer_code_is_that_of_numpy(fmt):
    codes = every_code(fmt)
    values = codes.view(fmt.name)
    assert_same_bits(integers(codes, fmt), values.astype(np.int64).astype(np.uint32), codes)
    assert_values(codes, fmt, values.astype(np.float64))


def test_integers_of_32_bits_round_to_nearest_even(rng):
    borders = [0, 1, -1, 2**24 + 1, 2**24 + 3, -(2**24) - 1, 2**31 - 1, -(2**31), 2**31 - 64, 2**31 - 65, 128 - 2**31]
    values = np.concatenate([borders, rng.integers(-(1 << 31), 1 << 31, 50_000) >> rng.integers(0, 32, 50_000)])
    codes = values.astype(np.int32).view(np.uint32)
    assert_same_bits(integers(codes, formats.INT32), codes, codes)
    assert_values(codes, formats.INT32, values.astype(np.float64))
    assert_same_bits(integers(codes, formats.UINT32), codes, codes)
    assert_values(codes, formats.UINT32, codes.astype(np.float64))


def test_fp32_is_what_the_processor_says(rng):
    codes = fp32_codes(rng, 100_000)
    assert_values(codes, formats.FP32, fp32_values(codes))


def test_tf32_ignores_its_padding_bits_save_to_tell_nan_from_infinity():
    codes = np.uint32([0x3F801FFF, 0x00001FFF, 0x80001FFF, 0x7F800000, 0x7F800001, 0xFF801FFF])
    assert_values(codes, formats.TF32, np.array([1.0, 0.0, -0.0, np.inf, np.nan, np.nan]))


@pytest.mark.parametrize("fmt", [f for f in formats.FORMATS.values() if f.is_float])
def test_canonical_replaces_every_nan_and_nothing_else(fmt, rng):
    codes = every_code(fmt) if fmt.bits <= 16 else random_fp32(rng, 100_000)
    is_nan = np.isnan(decode(codes, fmt))
    assert is_nan.any()
    assert_same_bits(canonical(codes, fmt), np.where(is_nan, fmt.nan, codes), codes)


@pytest.mark.parametrize("fmt", [fmt for fmt in formats.FORMATS.values() if not fmt.is_float])
def test_saturation_is_that_of_python(rng, fmt):
    borders = np.add.outer([-1, 0, 1], [fmt.min, 0, fmt.max]).ravel()
    values = np.concatenate([borders, rng.integers(-(1 << 31), 1 << 32, 5_000) >> rng.integers(0, 32, 5_000)])
    codes = saturate(values, fmt)
    assert codes.dtype == storage_dtype(fmt)
    assert codes.tolist() == [min(max(value, fmt.min), fmt.max) % (1 << fmt.bits) for value in values.tolist()]


def significand_bits(value: np.ndarray) -> int:
    value = value[np.isfinite(value) & (value != 0)]
    scaled = np.unique(np.ldexp(np.frexp(np.abs(value).astype(np.float64))[0], 24).astype(np.int64))
    return 24 - int(np.log2((scaled & -scaled).min()))


@pytest.mark.parametrize("fmt", formats.MAC_FORMATS)
def test_operands_of_single_pass_formats_are_their_values_in_12_bits(fmt):
    codes = every_code(fmt)
    value = operand(codes, fmt)
    assert value.dtype == np.float32
    assert_same_bits(value, decode(codes, fmt), codes)
    assert significand_bits(value) <= 12


def test_fp32_halves_have_12_bits_and_add_up_to_the_value(rng):
    codes = fp32_codes(rng, 200_000)
    value = fp32_values(codes)
    finite = np.isfinite(value)
    hi, lo = operand(codes, formats.FP32, "hi"), operand(codes, formats.FP32, "lo")
    assert significand_bits(hi) <= 12 and significand_bits(lo) <= 12
    assert_same_bits(hi[finite].astype(np.float64) + lo[finite].astype(np.float64), value[finite], codes[finite])
    assert np.array_equal(np.signbit(lo), codes >> 31 == 1)
    assert np.array_equal(np.signbit(hi[finite]), np.signbit(value[finite]))
    assert np.array_equal(hi == 0, value == 0), "only a zero has a zero high half, a subnormal has not"
    normal = finite & (np.abs(value) >= 2.0**-126)
    assert_same_bits(hi[normal].view(np.uint32), codes[normal] & 0xFFFFF000, codes[normal])


def test_fp32_specials_travel_in_the_high_half_only():
    codes = np.uint32([0x7F800000, 0xFF800000, 0x7FC00000, 0x7F800001, 0xFF800FFF])
    assert_same_bits(operand(codes, formats.FP32, "hi"), fp32_values(codes), codes)
    assert_same_bits(operand(codes, formats.FP32, "lo"), np.float32([0.0, -0.0, 0.0, 0.0, -0.0]), codes)


@pytest.mark.parametrize("fmt", formats.FORMATS.values())
def test_scalars_and_shapes_pass_through(fmt):
    codes = np.zeros((2, 3, 1), storage_dtype(fmt))
    for function in (decode, widen) if fmt not in formats.MAC_FORMATS else (decode, widen, operand):
        assert function(codes, fmt).shape == (2, 3, 1)
        assert function(codes[0, 0, 0], fmt) == 0
    assert widen(codes, fmt).dtype == np.uint32


@pytest.mark.parametrize(
    ("function", "arguments", "message"),
    [
        (operand, (formats.FP32, None), "half must be 'hi' or 'lo' for fp32, not None"),
        (operand, (formats.BF16, "hi"), "half must be None for bf16, not 'hi'"),
        (operand, (formats.INT16, None), "format must be fp32 or one of .*, not 'int16'"),
        (integers, (formats.BF16,), "format must be an integer format, not 'bf16'"),
        (saturate, (formats.BF16,), "format must be an integer format, not 'bf16'"),
    ],
)
def test_format_or_half_wrong(function, arguments, message):
    with pytest.raises(ValueError, match=message):
        function(np.uint32(0), *arguments)
