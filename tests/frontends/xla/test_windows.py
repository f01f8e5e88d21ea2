"""Reductions of windows, cumulative functions, and gradients of pooling."""

from itertools import product

import jax
import numpy as np
import pytest
from jax import lax
from jax import numpy as jnp

from neuroncore_rtl.frontends.xla.refusal import Refused
from tests.frontends.xla.bounds import assert_linear, draw_floats, run_golden
from tests.frontends.xla.draws import composed, draw_array
from tests.frontends.xla.results import compare, compare_all, compile_text, run_text

PRESETS = ["nano", "tiny"]


def draw_window(rng, shape):
    """Return attributes of `reduce_window` whose windows fit the padded array."""
    while True:
        size, stride, dilation, spread = (rng.integers(1, most + 1, len(shape)) for most in (4, 3, 2, 2))
        padding = rng.integers(-1, 3, (len(shape), 2))
        extents = (np.array(shape) - 1) * spread + 1 + padding.sum(1)
        if (extents >= (size - 1) * dilation + 1).all():
            names = "window_dimensions", "window_strides", "padding", "base_dilation", "window_dilation"
            values = size, stride, padding, spread, dilation
            return {name: tuple(map(tuple, v.tolist())) if v.ndim > 1 else tuple(v.tolist())
                    for name, v in zip(names, values, strict=True)}  # fmt: skip


@pytest.mark.parametrize("preset", PRESETS)
def test_drawn_windows(preset):
    rng, cases = np.random.default_rng(len(preset)), []
    for shape in [(9,), (6, 7), (5, 6), (3, 5, 4)]:
        window = draw_window(rng, shape)

        def reduced(x, window=window):
            functions = (0, lax.add), (-(2**31), lax.max), (2**31 - 1, lax.min), (3, lax.mul)
            return [lax.reduce_window(x, np.int32(start), function, **window) for start, function in functions]

        def added(x, window=window):
            return lax.reduce_window(x, x.dtype.type(0), lax.add, **window)

        cases.append((reduced, draw_array(rng, shape, np.int32)))
        assert_linear(added, draw_floats(rng, *shape), preset=preset)
    compare_all(*cases, preset=preset)


def test_order_and_several_operands():
    """A body that is associative, but not commutative, on pairs."""
    rng = np.random.default_rng(2)
    x, y = draw_array(rng, (4, 37), np.int32), draw_array(rng, (4, 37), np.int32)

    def windows(x, y):
        sides = ((1, 5), "VALID"), ((2, 3), "SAME"), ((1, 29), ((0, 0), (28, 0)))
        start = np.int32(1), np.int32(0)
        return [lax.reduce_window((x, y), start, composed, size, (1, 1), padding) for size, padding in sides]

    compare(windows, x, y)


@pytest.mark.parametrize(("preset", "n"), [("nano", 1), ("nano", 64), ("tiny", 7), ("tiny", 100)])
def test_cumulative(preset, n):
    rng = np.random.default_rng(3)
    x, f = draw_array(rng, (3, n), np.int32), draw_floats(rng, n, 2)
    assert_linear(lambda x: jnp.cumsum(x, 0), f, preset=preset)
    f[n // 2, 0] = np.nan
    compare_all(
        (lambda x: (jnp.cumsum(x, 1), lax.cummax(x, 1, reverse=True), jnp.cumprod(x, 0)), x),
        (lambda x: (lax.cummin(x, 0), lax.cummax(x, 0)), f),
        preset=preset,
    )


@pytest.mark.parametrize(("preset", "padding"), [("tiny", "SAME"), ("nano", "VALID")])
def test_gradients_of_pooling(preset, padding):
    rng = np.random.default_rng(4)
    for size, stride in [((3, 3), (2, 2)), ((2, 2), (2, 2)), ((2, 3), (1, 3))]:
        dims, steps = (1, *size, 1), (1, *stride, 1)

        def highest(x, dims=dims, steps=steps):
            return lax.reduce_window(x, -np.inf, lax.max, dims, steps, padding)

        def mean(x, dims=dims, steps=steps):
            return lax.reduce_window(x, x.dtype.type(0), lax.add, dims, steps, padding)

        x = rng.integers(-2, 3, (1, 6, 7, 2)).astype(np.float32)
        weights = draw_floats(rng, *jax.eval_shape(highest, x).shape)
        compare(highest, x, preset=preset)
        assert_linear(lambda c, x: jax.vjp(highest, x)[1](c)[0], weights, fixed=(x,), preset=preset)
        assert_linear(lambda c, x: jax.vjp(mean, x)[1](c)[0], weights, fixed=(x,), preset=preset)


SELECTION = """func.func @main(%x: {array}, %s: {source}) -> {array} {{
  %z = stablehlo.constant dense<{zero}> : tensor<{of}>
  %r = "stablehlo.select_and_scatter"(%x, %s, %z) <{{{attributes}}}> ({{
    ^bb0(%a: tensor<{of}>, %b: tensor<{of}>):
      %c = stablehlo.compare {direction}, %a, %b : (tensor<{of}>, tensor<{of}>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
  }}, {{
    ^bb0(%a: tensor<{of}>, %b: tensor<{of}>):
      %t = stablehlo.{combine} %a, %b : tensor<{of}>
      stablehlo.return %t : tensor<{of}>
  }}) : ({array}, {source}, tensor<{of}>) -> {array}
  return %r : {array}
}}"""
PADDINGS = [((0, 2), (0, 0)), ((2, 0), (0, 1)), ((0, 0), (1, 0)), ((1, 2), (2, 1)), ((2, 2), (2, 2))]


@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize(("direction", "keeps"), [("GE", np.greater_equal), ("LT", np.less)])
def test_padding_of_a_selection(padding, direction, keeps):
    """No element of the padding is selected. JAX pads the array itself, so this is StableHLO's text."""
    rng, size = np.random.default_rng(6), (3, 3)
    for stride in (2, 1), (3, 4):
        counts = tuple((n + sum(p) - w) // s + 1 for n, p, w, s in zip((4, 5), padding, size, stride, strict=True))
        pads = ", ".join(str(list(pair)) for pair in padding)
        attributes = f"padding = dense<[{pads}]> : tensor<2x2xi64>, window_dimensions = array<i64: 3, 3>, "
        attributes += f"window_strides = array<i64: {stride[0]}, {stride[1]}>"
        names = {"of": "f32", "zero": "0.0", "direction": direction, "combine": "add", "attributes": attributes}
        source = f"tensor<{counts[0]}x{counts[1]}xf32>"
        compiled = compile_text(SELECTION.format(array="tensor<4x5xf32>", source=source, **names))
        for low, high in (-2, -1), (-1, 1), (1, 3):
            x = rng.integers(low, high, (4, 5), endpoint=True).astype(np.float32)
            source = rng.integers(1, 99, counts).astype(np.float32)
            expected = np.zeros_like(x)
            for place in np.ndindex(counts):
                first = [at * s - p for at, s, (p, _) in zip(place, stride, padding, strict=True)]
                inside = [(i, j) for i, j in product(*(range(at, at + 3) for at in first)) if 0 <= i < 4 and 0 <= j < 5]
                best = inside[0]
                for other in inside[1:]:
                    best = best if keeps(x[best], x[other]) else other
                expected[best] += source[place]
            np.testing.assert_array_equal(compiled.execute((x, source), "golden")[0][0], expected)


def test_refusals():
    x = np.ones((1100,), np.float32)
    with pytest.raises(Refused, match="at most 1024 elements, not 1100"):
        run_golden(jax.grad(lambda x: lax.reduce_window(x, -np.inf, lax.max, (1100,), (1,), "VALID").sum()), x)


def test_selected_elements_combine_by_or():
    names = {"of": "i32", "zero": 0, "direction": "GE", "combine": "or", "array": "tensor<4xi32>"}
    text = SELECTION.format(source="tensor<3xi32>", attributes="window_dimensions = array<i64: 2>", **names)
    found = run_text(text, np.array([1, 5, 2, 3], np.int32), np.array([6, 3, 8], np.int32))[0]
    np.testing.assert_array_equal(found, [0, 7, 0, 8])
