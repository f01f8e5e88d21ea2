"""Convolutions of drawn shapes and attributes, their gradients, and integers."""

from functools import partial
from math import prod

import jax
import numpy as np
import pytest
from jax import lax
from jax import numpy as jnp

from neuroncore_rtl.frontends.xla.jitted import jit
from neuroncore_rtl.spec.isa import Storage
from tests.frontends.xla.bounds import assert_linear, draw_floats
from tests.frontends.xla.draws import draw_array
from tests.frontends.xla.results import compare, compare_all

LETTERS = "DHW"


def draw(rng, rank, groups=1, batch_groups=1):
    """Return the shapes of an array and a filter, and attributes for which there are outputs."""
    while True:
        images, channels, outputs = (int(rng.integers(1, 4)) for _ in range(3))
        spatial = [int(n) for n in rng.integers(2, 8, rank)]
        size = [int(n) for n in rng.integers(1, 4, rank)]
        stride, spread, dilation = (tuple(map(int, rng.integers(1, 4, rank))) for _ in range(3))
        padding = [tuple(map(int, rng.integers(-1, 4, 2))) for _ in range(rank)]
        extents = [(n - 1) * s + 1 + sum(p) for n, s, p in zip(spatial, spread, padding, strict=True)]
        if any(n < (k - 1) * d + 1 for n, k, d in zip(extents, size, dilation, strict=True)):
            continue
        x = [images * batch_groups, channels * groups, *spatial]
        w = [outputs * groups * batch_groups, channels, *size]
        orders = [rng.permutation(rank + 2) for _ in range(3)]
        letters = [np.array([*start, *LETTERS[:rank]]) for start in ("NC", "OI", "NC")]
        attributes = {
            "window_strides": stride, "padding": padding, "lhs_dilation": spread, "rhs_dilation": dilation,
            "feature_group_count": groups, "batch_group_count": batch_groups,
            "dimension_numbers": tuple("".join(one[order]) for one, order in zip(letters, orders, strict=True)),
        }  # fmt: skip
        return ([x[d] for d in orders[0]], [w[d] for d in orders[1]]), attributes


def check(rng, shapes, attributes, preset):
    """Compare a convolution, and both gradients, each of which is linear in the two operands that it depends on."""

    def convolve(x, w):
        return lax.conv_general_dilated(x, w, **attributes)

    def gradients(x, w, c):
        return jax.vjp(convolve, x, w)[1](c)

    x, w = (draw_floats(rng, *shape) for shape in shapes)
    assert_linear(convolve, x, w, preset=preset)
    assert_linear(gradients, x, w, draw_floats(rng, *jax.eval_shape(convolve, x, w).shape))


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_drawn(rank):
    rng = np.random.default_rng(rank)
    for preset in ("nano", "tiny", "nano"):
        check(rng, *draw(rng, rank), preset)


@pytest.mark.parametrize(("groups", "batch_groups"), [(2, 1), (1, 3)])
def test_groups(groups, batch_groups):
    rng = np.random.default_rng(groups)
    for _ in range(3):
        check(rng, *draw(rng, 2, groups, batch_groups), "tiny")


@pytest.mark.parametrize("multiple", [1, 2])
def test_groups_of_one_channel(multiple):
    rng = np.random.default_rng(3)
    for attributes in (
        {"window_strides": (1, 1), "padding": "SAME"},
        {"window_strides": (2, 1), "padding": ((1, -1), (0, 2)), "lhs_dilation": (1, 2), "rhs_dilation": (2, 1)},
    ):
        shapes = (2, 3, 5, 4), (3 * multiple, 1, 2, 3)
        check(rng, shapes, {**attributes, "feature_group_count": 3}, "tiny")


BLOCKS = [
    ((2, 9, 6, 5), (7, 9, 3, 3)),
    ((1, 1, 9, 8), (5, 1, 5, 3)),
    ((2, 6, 3, 40), (3, 6, 1, 1)),
    ((1, 2, 5, 70), (2, 2, 2, 3)),
]


@pytest.mark.parametrize("shapes", BLOCKS)
@pytest.mark.parametrize("preset", ["nano", "small"])
def test_blocks(shapes, preset):
    """More channels than partitions, taps that share partitions, rows longer than a bank."""
    check(np.random.default_rng(4), shapes, {"window_strides": (1, 1), "padding": "SAME"}, preset)


def test_the_array_transposes_a_filter_and_columns_share_partitions():
    """Only the result is stored; 9 taps of half as many channels as partitions are 5 stationary operands."""
    rng = np.random.default_rng(10)
    x, w = draw_floats(rng, 1, 8, 12, 12), draw_floats(rng, 16, 8, 3, 3)
    model = jit(lambda x, w: lax.conv(x, w, (1, 1), "SAME"), preset="small", target="golden", cache="")
    steps = [step.instruction for step in model.lower(x, w).compile().compiled.program.steps]
    stored = sum(prod(one.shape) for one in steps if any(region.storage == Storage.HBM for region in one.writes))
    assert stored == 16 * 12 * 12
    # Each is transposed, which loads both halves of it, and then multiplied.
    assert sum(one.name == "LOAD_STATIONARY" for one in steps) == 5 * (2 + 2)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float8_e5m2"])
def test_narrow(dtype):
    rng = np.random.default_rng(5)
    x, w = (draw_floats(rng, *shape, dtype=jnp.dtype(dtype)) for shape in ((1, 3, 5, 6), (4, 3, 3, 2)))
    assert_linear(lambda x, w: lax.conv(x, w, (2, 1), "SAME", preferred_element_type=float), x, w)


def test_narrow_results():
    rng = np.random.default_rng(6)
    x, w = draw_floats(rng, 1, 3, 5, 6, dtype=jnp.bfloat16), draw_floats(rng, 4, 3, 3, 2, dtype=jnp.bfloat16)
    assert_linear(lambda x, w: lax.conv(x, w, (1, 2), "SAME"), x, w)


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.uint8])
def test_integers(dtype):
    rng = np.random.default_rng(7)
    wide, cases = np.int32 if np.iinfo(dtype).min else np.uint32, []
    for _ in range(2):
        (x, w), attributes = draw(rng, 2)
        convolve = partial(lax.conv_general_dilated, **attributes, preferred_element_type=wide)
        cases.append((convolve, draw_array(rng, x, dtype), draw_array(rng, w, dtype)))
    compare_all(*cases)


def test_reversed_filter():
    rng = np.random.default_rng(8)
    x, w = draw_floats(rng, 2, 3, 6, 5), draw_floats(rng, 4, 3, 3, 2)
    assert_linear(lambda x, w: lax.conv(x, lax.rev(w, (2,)), (1, 1), "SAME"), x, w)
    assert_linear(lambda x, w: lax.conv(x, lax.rev(w, (2, 3)), (2, 1), "VALID"), x, w, preset="nano")
    assert_linear(lambda x, y: jnp.convolve(x, y), draw_floats(rng, 40), draw_floats(rng, 7))


def test_nothing():
    x, w = np.zeros((2, 0, 4, 4), np.float32), np.zeros((3, 0, 2, 2), np.float32)
    compare(lambda x, w: lax.conv(x, w, (1, 1), "SAME"), x, w)


def test_hardware():
    rng = np.random.default_rng(9)
    x, w = draw_floats(rng, 1, 3, 4, 5), draw_floats(rng, 5, 3, 2, 2)
    model = jit(lambda x, w: lax.conv(x, w, (1, 1), "SAME"), preset="nano", target="rtl")
    assert model(x, w).shape == (1, 5, 4, 5)
    assert model.result.bit_exact
    assert_linear(lambda x, w: lax.conv(x, w, (1, 1), "SAME"), x, w, preset="nano")
