"""Views of strided elements against numpy."""

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

from neuroncore_rtl.kernels import strides


def random_array(rng):
    rank = int(rng.integers(0, 5))
    return tuple(map(int, rng.integers(0, 6, rank))), tuple(map(int, rng.integers(-40, 40, rank)))


def random_key(rng, rank):
    def end():
        return None if rng.random() < 0.3 else int(rng.integers(-8, 8))

    key = []
    for _ in range(int(rng.integers(0, rank + 2))):
        kind = rng.random()
        step = int(rng.choice([-3, -2, -1, 1, 2, 3]))
        key.append(int(rng.integers(-6, 6)) if kind < 0.3 else None if kind < 0.4 else slice(end(), end(), step))
    if rng.random() < 0.3:
        key.insert(int(rng.integers(0, len(key) + 1)), ...)
    return tuple(key)


def start_of(array):
    return array.__array_interface__["data"][0]


def test_parts_are_those_of_numpy(rng):
    compared = refused = 0
    for _ in range(4000):
        shape, steps = random_array(rng)
        key, array = random_key(rng, len(shape)), as_strided(np.zeros(1, np.int8), shape, steps)
        try:
            # With ... numpy returns a view for a single element as well.
            view = array[key if ... in key else (*key, ...)]
        except IndexError:
            refused += 1
            with pytest.raises(IndexError):
                strides.part(shape, steps, key)
            continue
        expected = start_of(view) - start_of(array), view.shape, view.strides
        assert strides.part(shape, steps, key) == expected, (shape, steps, key)
        compared += 1
    assert compared > 1500 and refused > 500


def test_what_is_no_index_is_refused():
    for wrong, error, message in (
        (([0, 1],), TypeError, r"an index must be an integer, a slice, None or ..., not \[0, 1\]"),
        ((np.arange(2),), TypeError, "an index must be an integer"),
        ((4,), IndexError, "index 4 is out of bounds for dimension 0 of 4"),
        ((0, 0, 0), IndexError, "indices must be at most 2 and one ..., not"),
        ((..., ...), IndexError, "indices must be at most 2 and one"),
    ):
        with pytest.raises(error, match=message):
            strides.part((4, 6), (6, 1), wrong)
