"""Comparison of models with JAX on the CPU, within the bound of an FP32 accumulation."""

from collections.abc import Callable

import jax
import numpy as np

from neuroncore_rtl.frontends.xla.jitted import jit

__all__ = ["assert_linear", "draw_floats", "run_golden"]

UNIT = 2.0**-24
"""Maximum relative error of a rounding to FP32."""


def run_golden(function: Callable, *arrays, preset: str = "tiny", **options) -> list[np.ndarray]:
    """Return the results of the golden model."""
    found = jit(function, preset=preset, target="golden", order="program", **options)(*arrays)
    return [np.asarray(one) for one in jax.tree.leaves(found)]


def assert_linear(function: Callable, *arrays, fixed: tuple = (), preset: str = "tiny", **options) -> None:
    """Assert that sums of n products of the arrays' elements have an error of at most terms * 2^-24 * sum |products|.

    `function` must be linear in each array. Then its value for magnitudes is the sum of magnitudes, and its value for
    ones is n. Each addition in FP32 adds a relative error of 2^-24 of a partial sum, in any order of the terms. A
    product of narrow operands is one term; one of FP32 is four, which are products of halves of significands. `fixed`
    are further arguments that only select. A result is rounded once more.
    """
    found = run_golden(function, *arrays, *fixed, preset=preset, **options)
    compiled = jax.jit(function)  # once for the three of them
    with jax.enable_x64(True):
        variants = [np.asarray(one).astype(np.float64) for one in arrays]
        wide = [np.asarray(one).astype(np.float64) for one in fixed]
        exact, sums, counts = (
            [np.asarray(one) for one in jax.tree.leaves(compiled(*some, *wide))]
            for some in (variants, [*map(np.abs, variants)], [*map(np.ones_like, variants)])
        )
    narrow = len(arrays) == 1 or (arrays[0].dtype == arrays[1].dtype != np.float32)
    terms = 1 if narrow else 4
    for own, value, size, count in zip(found, exact, sums, counts, strict=True):
        last = 0.0 if own.dtype == np.float32 else float(jax.numpy.finfo(own.dtype).eps)
        bound = (terms * np.abs(count) + 1) * UNIT * size + last * np.abs(value)
        error = np.abs(own.astype(np.float64) - value)
        assert own.shape == value.shape
        assert (error <= bound).all(), (error - bound).max()


def draw_floats(rng: np.random.Generator, *shape: int, dtype=np.float32) -> np.ndarray:
    """Return normal numbers."""
    return rng.normal(size=shape).astype(np.float32).astype(dtype)
