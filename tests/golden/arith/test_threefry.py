"""Threefry-2x32 against its authors' known answers."""

import numpy as np
import pytest

from neuroncore_rtl.golden.arith import random_words, threefry2x32
from tests.oracles.known import RANDOM123


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


def test_words_look_uniform_and_differ():
    words = random_words(1, 2, np.arange(1 << 20))
    ones = np.unpackbits(words.view(np.uint8)).reshape(-1, 32).mean(axis=0)
    assert np.abs(ones - 0.5).max() <= 5 * 0.5 / 2**10
    # Birthday problem: 128 collisions are expected among a million words of 32 bits.
    assert abs(len(words) - len(np.unique(words)) - 128) <= 4 * 128**0.5


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
