"""Draws for random functions of JAX: arrays with special values, and a pool of values that steps take and add to."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from jax import lax
from jax import numpy as jnp

__all__ = ["BOOLEAN", "FLOATS", "INTEGERS", "MOST", "TYPES", "Drawn", "Pool", "composed", "draw_array", "is_float"]

INTEGERS = [np.dtype(one) for one in ("i1", "i2", "i4", "u1", "u2", "u4")]
FLOATS = [np.dtype(one) for one in (
    np.float32, ml_dtypes.bfloat16, np.float16, ml_dtypes.float8_e4m3, ml_dtypes.float8_e5m2, ml_dtypes.float8_e3m4,
)]  # fmt: skip
BOOLEAN = np.dtype(bool)
TYPES = [*INTEGERS, *FLOATS, BOOLEAN]
MOST = 400
"""Maximum elements of a value."""


def is_float(of) -> bool:
    return np.dtype(of) in FLOATS


def draw_array(rng: np.random.Generator, shape: Sequence[int], of) -> np.ndarray:
    """Return numbers of a type, a third of them at its ends or special; none is a subnormal FP32 number."""
    of = np.dtype(of)
    if of == BOOLEAN:
        return rng.random(shape) < 0.5
    if of in INTEGERS:
        limits = np.iinfo(of)
        numbers = rng.integers(limits.min, limits.max, shape, dtype=of, endpoint=True)
        few = rng.integers(-9 if limits.min else 0, 10, shape).astype(of)
        ends = rng.choice(np.array([limits.min, limits.max, 0, 1], of), shape)
        return np.choose(rng.integers(0, 3, shape), [numbers, few, ends]).astype(of)
    most = float(ml_dtypes.finfo(of).max)
    special = rng.choice(np.array([0.0, -0.0, np.inf, -np.inf, np.nan, most, -most, 1.0, -1.0, 0.5]), shape)
    return np.where(rng.random(shape) < 0.3, special, rng.integers(-12, 13, shape) / 8).astype(np.float32).astype(of)


def composed(a: tuple, b: tuple) -> tuple:
    """Return the product and the sum of the function that applies a and then b, each x -> product * x + sum."""
    return a[0] * b[0], a[1] * b[0] + b[1]


@dataclass
class Drawn:
    """A value of the pool; `near` if its last bits may differ."""

    value: Any
    near: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.value.shape)

    @property
    def of(self) -> np.dtype:
        return np.dtype(self.value.dtype)


class Pool:
    """Values so far, and draws."""

    def __init__(self, rng: np.random.Generator, values: Sequence[Drawn]):
        self.rng, self.values = rng, list(values)

    def one_of(self, some: Sequence) -> Any:
        return some[int(self.rng.integers(len(some)))]

    def number(self, low: int, high: int) -> int:
        """Return an integer from low to high."""
        return int(self.rng.integers(low, high + 1))

    def take(self, test: Callable[[Drawn], bool] = lambda _: True, near: bool = False) -> Drawn:
        """Return a value, a late one rather than an early one, for which the test holds; ValueError if none."""
        some = [one for one in self.values if (near or not one.near) and test(one)]
        if not some:
            raise ValueError("there must be such a value")
        return some[-1 - min(int(self.rng.geometric(0.25)) - 1, len(some) - 1)]

    def like(self, of: np.dtype, shape: Sequence[int]) -> Any:
        """Return an array of this type and shape, of a value of the pool or a constant."""
        shape = tuple(shape)
        some = [one for one in self.values if one.of == of and not one.near and one.value.size]
        if not some or self.rng.random() < 0.15:
            return jnp.asarray(draw_array(self.rng, shape, of))
        one = self.one_of(some)
        if one.shape == shape:
            return one.value
        if self.rng.random() < 0.5:
            return jnp.resize(one.value, shape)
        return jnp.broadcast_to(one.value.reshape(-1)[0], shape)

    def small(self, value: Any, most: float) -> Any:
        """Return whole numbers of at most this size; their sums are exact."""
        if not is_float(value.dtype):
            return value
        # XLA folds the rounding of FP8 constants to NaN.
        return jnp.clip(lax.round(value.astype(np.float32)), -most, most).astype(value.dtype)
