"""Reductions of any body, of any size, over any dimensions."""

from functools import partial

import numpy as np
import pytest
from jax import lax
from jax import numpy as jnp

from tests.frontends.xla.bounds import assert_linear, draw_floats, run_golden
from tests.frontends.xla.draws import composed, draw_array
from tests.frontends.xla.results import compare, compare_all

PRESETS = ["nano", "tiny"]


def test_positions_of_infinity_and_nan():
    compare(lambda x: (x.argmax(1), x.argmin(1)), np.float32([[-np.inf] * 4, [np.nan] * 4, [np.inf] * 4]))


@pytest.mark.parametrize(
    ("preset", "dtype"), [("nano", np.int32), ("nano", np.uint8), ("tiny", np.int32), ("tiny", np.int16)]
)
def test_integers(preset, dtype):
    rng, cases = np.random.default_rng(2), []
    functions = lax.add, lax.mul, lax.max, lax.min, lax.bitwise_and, lax.bitwise_or, lax.bitwise_xor
    for shape, axes in [((3, 7), (1,)), ((6, 5), (0,)), ((3, 4, 5), (0, 2))]:

        def reduced(x, start, axes=axes):
            return [lax.reduce(x, start, function, axes) for function in functions]

        cases.append((reduced, draw_array(rng, shape, dtype), draw_array(rng, (), dtype)[()]))
    compare_all(*cases, preset=preset)


def test_bodies_that_depend_on_order():
    """The first operand wins, or the last one: associative, but not commutative."""
    rng = np.random.default_rng(3)

    def first(a, b):
        return jnp.where(a != 0, a, b)

    def reduced(x, y):
        pairs = lax.reduce((x, y), (np.int32(1), np.int32(0)), composed, (1,))
        return lax.reduce(x, np.int32(0), first, (1,)), pairs

    cases = []
    for n in (1, 2, 3, 7, 12, 31):
        x, y = draw_array(rng, (2, n), np.int32), draw_array(rng, (2, n), np.int32)
        x[:, : n // 2] = 0
        cases.append((reduced, x, y))
    compare_all(*cases)


@pytest.mark.parametrize("preset", [*PRESETS, "full"])
def test_stages(preset):
    """Reductions that a partition has no room for, or that one partition would take long for."""
    rng, cases = np.random.default_rng(5), []
    shapes = [((20011,), (0,)), ((30, 3, 700), (0, 2)), ((3, 2500), (1,)), ((2500, 3), (0,)), ((256,), (0,))]
    for shape, axes in shapes:
        x = draw_floats(rng, *shape)
        assert_linear(lambda x, axes=axes: x.sum(axes), x, preset=preset)
        cases.append((lambda x, axes=axes: (x.max(axes), x.min(axes)), x))
    compare_all(*cases, preset=preset)


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


def test_one_element():
    """A reduction over dimensions of one element is the element, -0 and an initial value that is not neutral too."""
    x = np.float32([-0.0, 0, 3, np.nan, -np.inf]).reshape(1, 5, 1)
    functions = (0, lax.add), (7, lax.add), (0, lax.mul), (0, lax.max), (0, lax.min), (0, lambda a, b: a - 2 * b)

    def reduced(x, axes):
        return [lax.reduce(x, np.float32(start), function, axes) for start, function in functions]

    compare_all(*((partial(reduced, axes=axes), x) for axes in [(0,), (2,), (0, 2)]))


def test_empty():
    x = np.zeros((0, 4), np.float32)
    body = {"computation": lambda a, b: a - b, "dimensions": (0,)}
    compare_all(
        (lambda x: (x.sum(0), x.prod(0), x.max(0, initial=-1.0), x.sum(1), x.any()), x),
        (lambda x: lax.reduce(x, np.float32(3), **body), x),
    )


def test_hardware():
    x = draw_floats(np.random.default_rng(8), 3, 5)
    machine = compare(lambda x: (x.argmax(1), x.max(0)), x, preset="nano", target="rtl", order="scheduled")
    assert machine.result.bit_exact
