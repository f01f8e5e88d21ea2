"""Rounding to odd, against exact integers."""

import numpy as np
import pytest

from neuroncore_rtl.golden.arith import round_fp32, round_to_odd
from neuroncore_rtl.spec.formats import BF16


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
