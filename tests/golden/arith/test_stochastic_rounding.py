"""Stochastic rounding against gfloat; unbiased, idempotent, independent of order. Its random words."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuroncore_rtl.golden.arith import decode, random_words, round_fp32, round_stochastic, threefry2x32
from neuroncore_rtl.spec.formats import BF16, FORMATS, FP8E4M3, FP16, FP32, INT8, INT16, TF32, FloatFormat
from neuroncore_rtl.tb.check.oracles.compare import assert_same_bits
from neuroncore_rtl.tb.stimulus.operands import random_codes, random_fp32
from tests.oracles.known import RANDOM123
from tests.oracles.libraries import GFLOAT, gfloat_round
from tests.oracles.words import every_code

FP8 = [fmt for fmt in GFLOAT if fmt.bits == 8]
BELOW_FP32 = [fmt for fmt in FORMATS.values() if fmt != FP32]
DRAWS = 1 << 20


def assert_same_as_gfloat(value: np.ndarray, fmt: FloatFormat, random: np.ndarray) -> None:
    assert_same_bits(decode(round_fp32(value, fmt, "sr", random), fmt), gfloat_round(value, fmt, random), value, random)


def above(fmt: FloatFormat, code: int, remainder: np.ndarray, bits: int) -> np.ndarray:
    low, high = decode(np.array([code, code + 1]) << fmt.padding_bits, fmt)
    if not np.isfinite(high):
        high = 2.0 ** (fmt.max_exponent + 1)
    value = low + (high - low) * remainder / 2.0**bits
    assert np.array_equal(value, value.astype(np.float32)), "the remainders don't fit in FP32"
    return value.astype(np.float32).view(np.uint32)


def ends_and_borders(fmt: FloatFormat) -> list[int]:
    normal = 1 << fmt.mantissa_bits
    return [1, normal - 1, normal, fmt.bias * normal, fmt.bias * normal + 1, (fmt.infinity >> fmt.padding_bits) - 1]


@pytest.mark.parametrize("fmt", GFLOAT)
def test_every_remainder_on_both_sides_of_its_turn_agrees_with_gfloat(fmt):
    """Test every FP32 remainder above a code, with the largest random word that truncates and the next larger word.

    Rounding away is monotonic in the word, so these two words represent all 2**32.
    """
    bits = FP32.mantissa_bits - fmt.mantissa_bits
    remainder = np.arange(1, 1 << bits)
    turn = (1 << 32) - (remainder << (32 - bits))
    before, at = (turn - 1).astype(np.uint32), turn.astype(np.uint32)
    smallest_normal = 1 << fmt.mantissa_bits
    for code in (smallest_normal - 1, smallest_normal) if fmt in FP8 else ends_and_borders(fmt):
        value = above(fmt, code, remainder, bits)
        kept = np.full(len(value), code << fmt.padding_bits)
        assert_same_bits(round_fp32(value, fmt, "sr", before), kept, value, before)
        assert_same_bits(round_fp32(value, fmt, "sr", at), kept + (1 << fmt.padding_bits), value, at)
        assert_same_as_gfloat(value, fmt, before)
        assert_same_as_gfloat(value, fmt, at)


@pytest.mark.parametrize("fmt", FP8)
def test_fp8_every_8_bit_remainder_times_every_8_bit_word_agrees_with_gfloat(fmt):
    remainder, word = map(np.ravel, np.meshgrid(np.arange(256), np.arange(256)))
    for code in ends_and_borders(fmt):
        value = above(fmt, code, remainder, 8)
        low_ones = round_fp32(value, fmt, "sr", (word << 24 | 0xFFFFFF).astype(np.uint32))
        assert_same_bits(low_ones, code + (remainder + word >= 256), value, word)
        assert_same_as_gfloat(value, fmt, (word << 24).astype(np.uint32))


@pytest.mark.parametrize("fmt", FP8)
def test_fp8_every_code_with_remainders_and_words_agrees_with_gfloat(fmt):
    code, remainder, word = map(np.ravel, np.meshgrid(np.arange(fmt.infinity), np.arange(16), np.arange(16)))
    low, high = decode(code.astype(np.uint8), fmt), decode((code + 1).astype(np.uint8), fmt)
    high = np.where(np.isfinite(high), high, 2.0 ** (fmt.max_exponent + 1))
    value = (low + (high - low) * remainder / 16).astype(np.float32).view(np.uint32)
    random = (word << 28).astype(np.uint32)
    assert_same_bits(round_fp32(value, fmt, "sr", random), code + (remainder + word >= 16), value, random)
    assert_same_as_gfloat(value, fmt, random)
    assert_same_as_gfloat(value | np.uint32(1 << 31), fmt, random)


@pytest.mark.parametrize("fmt", [FP16, *FP8, INT8])
def test_discarded_part_is_cut_to_32_bits_and_no_shorter(fmt):
    """A remainder of 2**-32 ulp rounds away only with the largest word; a smaller remainder never does."""
    place = fmt.min_exponent - fmt.mantissa_bits if fmt.is_float else 0
    value = np.ldexp(np.float32([1, 1.75, 0.9999, 2**-20]), place - 32).view(np.uint32)
    assert round_fp32(value, fmt, "sr", np.uint32(0xFFFFFFFF)).tolist() == [1, 1, 0, 0]
    assert round_fp32(value, fmt, "sr", np.uint32(0xFFFFFFFE)).tolist() == [0, 0, 0, 0]


def values_in_range(fmt) -> list[float]:
    if not fmt.is_float:
        return [37.3, -5.001 if fmt.signed else 5.001, 0.25]
    last_place = 2.0**-fmt.mantissa_bits
    return [1 + 0.3 * last_place, -3.0 - 0.002 * last_place, 2.0**fmt.min_exponent * last_place * 1.7]


@pytest.mark.parametrize("fmt", BELOW_FP32)
def test_mean_of_a_million_draws_is_within_four_sigma(fmt):
    for stream, target in enumerate(values_in_range(fmt)):
        value = np.float32(target)
        draws = round_stochastic(np.full(DRAWS, value.view(np.uint32)), fmt, 13, stream, np.arange(DRAWS))
        results, counts = np.unique(decode(draws, fmt), return_counts=True)
        assert counts.sum() == DRAWS and len(results) == 2, f"{value!r} rounds to {results}"
        low, high = results
        up = (float(value) - low) / (high - low)
        sigma = (up * (1 - up) / DRAWS) ** 0.5
        assert 0 < up < 1
        assert abs(counts[1] / DRAWS - up) <= 4 * sigma, f"{value!r}: {counts[1] / DRAWS} of {up} rounded up"


@pytest.mark.parametrize("fmt", FORMATS.values())
def test_representable_values_never_change(fmt, rng):
    codes = random_codes(rng, fmt, 100_000) if fmt.bits == 32 and fmt != TF32 else every_code(fmt)
    value = decode(codes, fmt)
    exact = (value == value.astype(np.float32)) & ~((value == 0) & np.signbit(value) & (not fmt.is_float))
    codes, value = codes[exact], value[exact].astype(np.float32).view(np.uint32)
    assert_same_bits(round_fp32(value, fmt), codes, value)
    for random in (0, 1, 1 << 31, (1 << 32) - 1, rng.integers(0, 1 << 32, len(codes))):
        assert_same_bits(round_fp32(value, fmt, "sr", np.asarray(random, np.uint32)), codes, value)


@pytest.mark.parametrize("fmt", [TF32, BF16, FP16, FP8E4M3, INT16])
@settings(deadline=None, max_examples=25)
@given(
    shape=st.tuples(st.integers(1, 40), st.integers(1, 40)),
    seed=st.integers(0, (1 << 32) - 1),
    stream=st.integers(0, (1 << 32) - 1),
    base=st.integers(0, (1 << 63) - 1),
)
def test_any_elements_in_any_order_have_the_same_bits(fmt, shape, seed, stream, base):
    rng = np.random.default_rng(seed)
    size = shape[0] * shape[1]
    value = random_fp32(rng, size).reshape(shape)
    index = (np.arange(size, dtype=np.uint64) + np.uint64(base)).reshape(shape)
    whole = round_stochastic(value, fmt, seed, stream, index)
    some = rng.permutation(size)[: rng.integers(1, size + 1)]
    found = round_stochastic(value.ravel()[some], fmt, seed, stream, index.ravel()[some])
    assert_same_bits(found, whole.ravel()[some], value.ravel()[some])


def test_seeds_and_streams_draw_independently():
    value = np.full(100_000, np.float32(1 + 2.0**-8).view(np.uint32))
    index = np.arange(len(value))
    first = round_stochastic(value, BF16, 0, 0, index) & 1
    assert np.array_equal(first, round_fp32(value, BF16, "sr", random_words(0, 0, index)) & 1)
    for seed, stream in ((0, 1), (1, 0), (1, 1)):
        agreement = np.mean(round_stochastic(value, BF16, seed, stream, index) & 1 == first)
        assert abs(agreement - 0.5) <= 4 * 0.5 / len(value) ** 0.5, f"{seed}, {stream}: {agreement}"


@pytest.mark.parametrize(("rounds", "counter", "key", "result"), RANDOM123)
def test_known_answers_of_random123(rounds, counter, key, result):
    assert threefry2x32(key, counter, rounds) == result


def test_arrays_are_mixed_element_by_element():
    low, high = np.arange(6, dtype=np.uint32).reshape(2, 3), np.uint32(7)
    x0, x1 = threefry2x32((1, 2), (low, high))
    assert x0.shape == x1.shape == (2, 3) and x0.dtype == x1.dtype == np.uint32
    for place in np.ndindex(2, 3):
        assert (x0[place], x1[place]) == threefry2x32((1, 2), (low[place], high))


def test_key_is_seed_and_stream_and_counter_is_the_index():
    assert random_words(0x13198A2E, 0x03707344, np.uint64(0x85A308D3_243F6A88)) == 0xC4923A9C
    assert random_words(0, 0, 0) == 0x6B200159
    assert random_words(0xFFFFFFFF, 0xFFFFFFFF, np.uint64(0xFFFFFFFF_FFFFFFFF)) == 0x1CB996FC


@pytest.mark.parametrize(
    "seed, stream, index, error, message",
    [
        (1 << 32, 0, 0, ValueError, "seed must be between 0 and 2\\*\\*32 - 1, not 4294967296"),
        (0, -1, 0, ValueError, "stream must be between 0 and 2\\*\\*32 - 1, not -1"),
        (0, 0, -1, ValueError, "index must be at least 0, not -1"),
        (0.5, 0, 0, TypeError, "cannot be interpreted as an integer"),
    ],
)
def test_random_words_wrong(seed, stream, index, error, message):
    with pytest.raises(error, match=message):
        random_words(seed, stream, index)
