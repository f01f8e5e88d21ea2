"""Comparison of functions on the machine with JAX's CPU."""

from collections.abc import Callable

import jax
import numpy as np

from neuroncore_rtl.frontends.xla import jit

PRESET = "tiny"


def drawn(rng: np.random.Generator, shape: tuple[int, ...], dtype=np.float32) -> np.ndarray:
    """Return random numbers; floats are small integers, of which sums and products are exact."""
    dtype = np.dtype(dtype)
    if dtype == np.bool_:
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
    return rng.integers(-8, 9, shape).astype(dtype)


def compared(function: Callable, *args, bound: float = 0.0, **options) -> int:
    """Run a function on golden and by JAX; assert that results differ by at most `bound`, relative to the largest.

    Return the number of compared elements. A bound of 0 means the same numbers, zeros of the same sign and NaN alike.
    """
    model = jit(function, **{"preset": PRESET, "target": "golden", "order": "program", **options})
    found, right = (jax.tree.leaves(call(*args)) for call in (model, jax.jit(function)))
    assert len(found) == len(right)
    count = 0
    for one, other in zip(found, right, strict=True):
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        one, other = (
            np.asarray(each).astype(np.float64 if each.dtype.kind not in "iub" else each.dtype) for each in (one, other)
        )
        count += one.size
        if bound == 0:
            np.testing.assert_array_equal(one, other)
            if one.dtype.kind == "f":
                zero = one == 0
                np.testing.assert_array_equal(np.signbit(one[zero]), np.signbit(other[zero]))
        elif one.size:
            np.testing.assert_allclose(
                one, other, rtol=0, atol=bound * np.abs(other[np.isfinite(other)]).max(initial=1e-30)
            )
    return count
