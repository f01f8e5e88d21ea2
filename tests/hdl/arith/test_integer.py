"""The conversion of FP32 to integers."""

import numpy as np

from neuroncore_rtl.hdl.arith.integer import IntoInt


def test_integer_is_exact(run, rng):
    edges = [0, 1, 2, 3, (1 << 23) - 1, 1 << 23, (1 << 24) - 1]
    integers = np.array([*edges, *(-edge for edge in edges), *rng.integers(-(1 << 24) + 1, 1 << 24, 500)])
    integers = np.concatenate([integers, integers[-500:] >> rng.integers(0, 24, 500)])
    words = integers.astype(np.float32).view(np.uint32)
    assert run(IntoInt(), [{"value": word} for word in words]) == (integers & 0xFFFFFFFF).tolist()


def test_both_zeros_are_integer_zero(run):
    assert run(IntoInt(), [{"value": 0}, {"value": 0x80000000}]) == [0, 0]
