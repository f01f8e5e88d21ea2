"""Sorts of drawn lengths, types and criteria have JAX's results; of chunks in HBM too."""

import jax
import numpy as np
import pytest
from jax import lax
from jax import numpy as jnp

from tests.frontends.xla.results import compare, compare_all

SEED = 42
TYPES = ("float32", "bfloat16", "float16", "int32", "uint32", "int16", "uint8", "bool")


def draw(rng, shape, dtype, ties=True):
    """Return numbers of a type with its extremes, most of them several times if there are ties.

    None is subnormal: JAX's CPU compares such numbers as 0.
    """
    if dtype == "bool":
        return rng.random(shape) < 0.5
    if "float" in dtype:
        some = [0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1, -1, 1.5, -2]
        found = rng.choice(some, shape) if ties else rng.normal(size=shape)
        return found.astype(jnp.dtype(dtype))
    limits = np.iinfo(dtype)
    found = rng.choice([limits.min, limits.max, 0, 1, 2, 77], shape)
    return (found if ties else rng.integers(limits.min, limits.max, shape, endpoint=True)).astype(dtype)


@pytest.mark.parametrize("dtype", TYPES)
def test_sorts_of_all_types(rng, dtype):
    """Special values are in JAX's order, equal ones in their own; all bits stay."""
    x = draw(rng, (3, 13), dtype)

    def ordered(x):
        highest = lax.top_k(x, 5) if dtype != "bool" else ()
        return jnp.sort(x), jnp.argsort(x), jnp.argsort(x, descending=True), highest

    compare(ordered, x)


@pytest.mark.parametrize("seed", range(3))
def test_drawn_sorts(seed):
    rng, cases = np.random.default_rng(seed), []
    for _ in range(4):
        shape = tuple(rng.integers(1, 7, rng.integers(1, 4)).tolist())
        axis, keys = int(rng.integers(len(shape))), int(rng.integers(1, 4))
        operands = [draw(rng, shape, TYPES[rng.integers(len(TYPES))], rng.random() < 0.7) for _ in range(3)]
        cases.append((lambda *x, a=axis, k=keys: lax.sort(x, dimension=a, num_keys=k), *operands))
    compare_all(*cases)


@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (3, 63), (3, 64), (3, 65), (1, 700), (9, 130), (2, 0)])
def test_lengths(rng, shape):
    """A row is one chunk or several, and pairs or blocks of chunks fill the partitions."""
    x = draw(rng, shape, "int32")
    compare(lambda x: (jnp.sort(x), jnp.argsort(x, stable=True)), x)


def test_chunks_are_as_long_as_memory_holds(rng):
    x = draw(rng, (1, 300), "float32")
    compare(lambda x: lax.sort_key_val(x, x * 2), x, preset="nano")


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_a_negation_moves_nan_to_the_other_end(dtype):
    """The sign of NaN changes, which the k largest of -x depend on."""
    x = np.array([2, np.nan, -1, 0.0, -0.0, np.inf, -np.inf], dtype)
    compare(lambda x: (lax.top_k(-x, 3), jnp.partition(x, 2), jnp.signbit(-x), jnp.signbit(jnp.abs(-x))), x)


def test_functions_of_sorts(rng):
    x, y = draw(rng, (5, 9), "float32", ties=False), draw(rng, (12,), "int32")
    compare(lambda x: (jnp.sort(x, axis=0), jnp.percentile(x, 30, axis=1)), x, tolerance=1e-6)
    compare_all(
        (lambda y: (jnp.lexsort((y % 3, y)), jnp.searchsorted(jnp.sort(y), y[:3], method="sort")), y),
        (jax.grad(lambda x: (jnp.sort(x) * jnp.arange(9.0)).sum()), x),
    )


def test_comparators_of_any_body(rng):
    """One that reads both operands, one of a partial order, and one that reads a number from outside."""
    x, y = rng.integers(-5, 5, (3, 11)).astype(np.int32), rng.integers(-5, 5, (3, 11)).astype(np.int32)
    compare_all(
        (lambda x, y: lax.sort((x + y, x, y), num_keys=1), x, y),
        (lambda x, y: lax.sort((jnp.abs(x), y), num_keys=2), x, y),
    )


def test_approximate_extremes_are_exact(rng):
    """Also along another dimension, with equal elements, and with more results than asked."""
    x = rng.integers(-9, 9, (4, 40)).astype(np.float32)

    def extremes(x):
        most = lax.approx_max_k(x, 5, aggregate_to_topk=False)[0][:, :5]
        return lax.approx_max_k(x, 5), lax.approx_min_k(x, 3, reduction_dimension=0), most

    compare(extremes, x)


def test_one_criterion_is_compared_as_integers(rng):
    """A comparison of floats costs no more than one of integers: its keys are computed once."""
    x = draw(rng, (2, 32), "float32", ties=False)
    few = compare(lambda x: lax.sort((x, x), num_keys=1), x)
    many = compare(lambda x: lax.sort((x, x), num_keys=2), x)
    assert len(few.compiled.program.steps) * 1.5 < len(many.compiled.program.steps)


def test_sorts_on_nano(rng):
    compare(lambda x: lax.top_k(x, 2), draw(rng, (2, 6), "float32"), preset="nano", target="rtl")
