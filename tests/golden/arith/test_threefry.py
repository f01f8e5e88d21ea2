"""Threefry-2x32 against the known answers that its authors publish, and the words of a tensor's elements."""

import numpy as np
import pytest

from neuroncore_rtl.golden.arith import random_words, threefry2x32

KNOWN_ANSWERS = """
    13 00000000 00000000 00000000 00000000 9d1c5ec6 8bd50731
    13 ffffffff ffffffff ffffffff ffffffff fd36d048 2d17272c
    13 243f6a88 85a308d3 13198a2e 03707344 ba3e4725 f27d669e
    20 00000000 00000000 00000000 00000000 6b200159 99ba4efe
    20 ffffffff ffffffff ffffffff ffffffff 1cb996fc bb002be7
    20 243f6a88 85a308d3 13198a2e 03707344 c4923a9c 483df7a0
    32 00000000 00000000 00000000 00000000 cee3d47e a23dfd5c
    32 ffffffff ffffffff ffffffff ffffffff 6e2fe0d0 b1b76f82
    32 243f6a88 85a308d3 13198a2e 03707344 e2827716 c3c05cdf
"""
"""Rounds, counter, key, result: the threefry2x32 lines of tests/kat_vectors in Random123 (DEShawResearch/random123)."""


@pytest.mark.parametrize("line", KNOWN_ANSWERS.split("\n")[1:-1])
def test_known_answers_of_random123(line):
    rounds, *words = line.split()
    c0, c1, k0, k1, *expected = (int(word, 16) for word in words)
    assert [int(word) for word in threefry2x32((k0, k1), (c0, c1), int(rounds))] == expected


def test_arrays_are_mixed_element_by_element():
    low, high = np.arange(6, dtype=np.uint32).reshape(2, 3), np.uint32(7)
    x0, x1 = threefry2x32((1, 2), (low, high))
    assert x0.shape == x1.shape == (2, 3) and x0.dtype == x1.dtype == np.uint32
    for place in np.ndindex(2, 3):
        assert (x0[place], x1[place]) == threefry2x32((1, 2), (low[place], high))


def test_key_is_seed_and_stream_and_counter_is_the_index():
    index = 0x85A308D3_243F6A88
    assert random_words(0x13198A2E, 0x03707344, np.uint64(index)) == 0xC4923A9C
    assert random_words(0, 0, 0) == 0x6B200159
    assert random_words(0xFFFFFFFF, 0xFFFFFFFF, np.uint64(0xFFFFFFFF_FFFFFFFF)) == 0x1CB996FC


def test_words_look_uniform_and_differ():
    words = random_words(1, 2, np.arange(1 << 20))
    ones = np.unpackbits(words.view(np.uint8)).reshape(-1, 32).mean(axis=0)
    assert np.abs(ones - 0.5).max() <= 5 * 0.5 / 2**10
    # Birthdays: a million words of 32 bits are expected to collide 128 times.
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
