"""Threefry-2x32: counter-based random generator of reproducible stochastic rounding.

J. Salmon, M. Moraes, R. Dror, D. Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC 2011; constants from the
authors' Random123 library. The tests compare with its published known answers.
"""

from operator import index as index_of

import numpy as np

__all__ = ["PARITY", "ROTATIONS", "random_words", "threefry2x32"]

ROUNDS = 20
"""Rounds that Random123 recommends."""

ROTATIONS = (13, 15, 26, 6, 17, 29, 16, 24)
"""Left rotation of each round, modulo 8."""

PARITY = 0x1BD11BDA
"""The third key word is the xor of this and the other two (Skein's constant in its 32-bit form)."""


def threefry2x32(key, counter, rounds: int = ROUNDS) -> tuple[np.ndarray, np.ndarray]:
    """Return the two random words of a key and a counter, which are two uint32 words each and broadcast.

    The key is added to the state after every fourth round.
    """
    k0, k1 = (np.asarray(word, np.uint32) for word in key)
    c0, c1 = (np.asarray(word, np.uint32) for word in counter)
    keys = (k0, k1, k0 ^ k1 ^ np.uint32(PARITY))
    with np.errstate(over="ignore"):
        x0, x1 = c0 + k0, c1 + k1
        for done in range(1, rounds + 1):
            x0 = x0 + x1
            x1 = _rotate_left(x1, ROTATIONS[(done - 1) % 8]) ^ x0
            if done % 4 == 0:
                injection = done // 4
                x0 = x0 + keys[injection % 3]
                x1 = x1 + keys[(injection + 1) % 3] + np.uint32(injection)
    return x0, x1


def random_words(seed: int, stream: int, index) -> np.ndarray:
    """Return a random word per element, uint32.

    It is word 0 of Threefry-2x32-20 with key (seed, stream) and counter (low, high half of the index). `seed` is a
    32-bit word of the run, `stream` a 32-bit word that differs between the uses of randomness in the run, `index` the
    element's logical index in its tensor, below 2**64.
    """
    for name, word in (("seed", seed), ("stream", stream)):
        if not 0 <= index_of(word) < 1 << 32:
            raise ValueError(f"{name} must be between 0 and 2**32 - 1, not {word!r}")
    index = np.asarray(index)
    if np.any(index < 0):
        raise ValueError(f"index must be at least 0, not {int(index.min())}")
    index = index.astype(np.uint64)
    counter = (index & np.uint64(0xFFFFFFFF)).astype(np.uint32), (index >> np.uint64(32)).astype(np.uint32)
    return threefry2x32((seed, stream), counter)[0]


def _rotate_left(word: np.ndarray, distance: int) -> np.ndarray:
    return (word << np.uint32(distance)) | (word >> np.uint32(32 - distance))
