"""Reductions of any body, of any size, over any dimensions."""

import numpy as np
import pytest
from jax import lax
from jax import numpy as jnp

from tests.frontends.xla.bounds import assert_linear, draw_floats, draw_integers, run_golden
from tests.frontends.xla.results import compare

PRESETS = ["nano", "tiny"]


def special(rng, *shape):
    """Return floats with ties, infinities and NaN, several of them in a row."""
    numbers = rng.integers(-3, 3, shape).astype(np.float32)
    chosen = rng.choice([np.nan, np.inf, -np.inf, -0.0], shape).astype(np.float32)
    return np.where(rng.random(shape) < 0.2, chosen, numbers)


@pytest.mark.parametrize("preset", PRESETS)
def test_positions_of_extrema(preset):
    rng = np.random.default_rng(1)

    def positions(x):
        found = [find(x, axis) for find in (jnp.argmax, jnp.argmin) for axis in range(x.ndim)]
        return *found, jnp.argmax(x)

    for shape in [(5, 7), (2, 1, 3)]:
        compare(positions, special(rng, *shape), preset=preset)
        compare(positions, draw_integers(rng, np.int32, *shape), preset=preset)
    compare(lambda x: x.argmax(1), np.float32([[-np.inf] * 4, [np.nan] * 4]), preset=preset)


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("dtype", [np.int32, np.uint8, np.int16])
def test_integers(preset, dtype):
    rng = np.random.default_rng(2)
    functions = lax.add, lax.mul, lax.max, lax.min, lax.bitwise_and, lax.bitwise_or, lax.bitwise_xor
    for shape, axes in [((3, 7), (1,)), ((6, 5), (0,)), ((3, 4, 5), (0, 2))]:
        x, start = draw_integers(rng, dtype, *shape), draw_integers(rng, dtype)[()]

        def reduced(x, start, axes=axes):
            return [lax.reduce(x, start, function, axes) for function in functions]

        compare(reduced, x, start, preset=preset)


def test_bodies_that_depend_on_order():
    """The first operand wins, or the last one: associative, but not commutative."""
    rng = np.random.default_rng(3)

    def first(a, b):
        return jnp.where(a != 0, a, b)

    def composed(a, b):
        return a[0] * b[0], a[1] * b[0] + b[1]

    for n in (1, 2, 3, 7, 12, 31):
        x, y = draw_integers(rng, np.int32, 2, n), draw_integers(rng, np.int32, 2, n)
        x[:, : n // 2] = 0
        compare(lambda x: lax.reduce(x, np.int32(0), first, (1,)), x)
        start = np.int32(1), np.int32(0)
        compare(lambda x, y, start=start: lax.reduce((x, y), start, composed, (1,)), x, y)


@pytest.mark.parametrize("preset", PRESETS)
def test_truths(preset):
    rng = np.random.default_rng(4)
    for shape in [(3, 7), (40, 2), (1, 1)]:
        x = rng.random(shape) < 0.1
        compare(lambda x: (x.any(), x.all(0), (~x).all(1), x.any(0), x.sum(), x.sum(1)), x, preset=preset)


@pytest.mark.parametrize("preset", [*PRESETS, "full"])
def test_stages(preset):
    """Reductions that a partition has no room for, or that one partition would take long for."""
    rng = np.random.default_rng(5)
    shapes = [((20011,), (0,)), ((30, 3, 700), (0, 2)), ((3, 2500), (1,)), ((2500, 3), (0,)), ((256,), (0,))]
    for shape, axes in shapes:
        x = draw_floats(rng, *shape)
        assert_linear(lambda x, axes=axes: x.sum(axes), x, preset=preset)
        compare(lambda x, axes=axes: (x.max(axes), x.min(axes)), x, preset=preset)


def test_sums_by_the_array():
    """Sums over leading dimensions are products with ones, which no option rounds; what is not finite remains so."""
    x = draw_floats(np.random.default_rng(9), 17, 3, 40)
    assert_linear(lambda x: (x.sum((0, 1)), x.sum(0)), x, preset="full", auto_cast="matmult")
    x = draw_floats(np.random.default_rng(9), 40, 60)
    x[3, :3], x[4, 2] = (np.inf, np.nan, -np.inf), np.inf
    (found,) = run_golden(lambda x: x.sum(0), x, preset="full")
    np.testing.assert_array_equal(found[:3], [np.inf, np.nan, np.nan])


def test_million_elements():
    assert_linear(lambda x: x.sum(), draw_floats(np.random.default_rng(6), 1 << 20), preset="small")


@pytest.mark.parametrize("preset", PRESETS)
def test_reductions_of_reductions(preset):
    x = np.random.default_rng(7).normal(size=(6, 4, 10)).astype(np.float32)

    def chained(x):
        rows = x.max(2, keepdims=True)
        return (
            x.max(1).max(0),
            x.max(2).max(1),
            rows.max((0, 1)),
            jnp.where(x == rows, x, x.max()),
            rows.max(1) > x[0, 0],
        )

    compare(chained, x, preset=preset)


def test_one_element():
    """A reduction over dimensions of one element is the element, -0 and an initial value that is not neutral too."""
    x = np.float32([-0.0, 0, 3, np.nan, -np.inf]).reshape(1, 5, 1)
    functions = lax.add, lax.mul, lax.max, lax.min, lambda a, b: a - 2 * b
    for axes in [(0,), (2,), (0, 2)]:
        compare(lambda x, axes=axes: [lax.reduce(x, np.float32(0), one, axes) for one in functions], x)
        compare(lambda x, axes=axes: lax.reduce(x, np.float32(7), lax.add, axes), x)


def test_empty():
    x = np.zeros((0, 4), np.float32)
    compare(lambda x: (x.sum(0), x.prod(0), x.max(0, initial=-1.0), x.sum(1), x.any()), x)
    body = {"computation": lambda a, b: a - b, "dimensions": (0,)}
    compare(lambda x: lax.reduce(x, np.float32(3), **body), x)


def test_hardware():
    x = draw_floats(np.random.default_rng(8), 3, 5)
    machine = compare(lambda x: (x.argmax(1), x.max(0)), x, preset="nano", target="rtl", order="scheduled")
    assert machine.result.bit_exact
