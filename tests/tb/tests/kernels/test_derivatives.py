"""Reference derivatives of kernels against finite differences."""

import numpy as np
import pytest

from neuroncore_rtl.tb.tests.kernels import derivatives
from neuroncore_rtl.tb.tests.kernels.derivatives import encoded
from tests.oracles.slopes import slopes_of


def check(expected, found):
    for one, other in zip(expected, found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-7)


def test_a_linear_layer(rng):
    x, w, bias, dy = (rng.normal(size=shape) for shape in ((5, 3), (3, 4), (1, 4), (5, 4)))
    found = derivatives.linear_gradients(x, w, dy).values()
    check(found, slopes_of(lambda: ((x @ w + bias) * dy).sum(), x, w, bias))


def test_layer_normalisation(rng):
    x, gamma, beta, dy = (rng.normal(size=shape) for shape in ((5, 7), (1, 7), (1, 7), (5, 7)))
    found = derivatives.layernorm_gradients(x, gamma, dy).values()
    check(found, slopes_of(lambda: (derivatives.layernorm(x, gamma, beta) * dy).sum(), x, gamma, beta))


@pytest.mark.parametrize("causal", (False, True))
def test_attention(rng, causal):
    q, k, v, dout = (rng.normal(size=shape) for shape in ((4, 3), (6, 3), (6, 2), (4, 2)))
    found = derivatives.attention_gradients(q, k, v, dout, causal).values()
    check(found, slopes_of(lambda: (derivatives.attention(q, k, v, causal) * dout).sum(), q, k, v))


def test_softmax_and_cross_entropy(rng):
    x, dy, labels = rng.normal(size=(5, 7)), rng.normal(size=(5, 7)), rng.integers(0, 7, 5)
    found = derivatives.softmax_gradient(derivatives.softmax(x), dy)
    check([found], slopes_of(lambda: (derivatives.softmax(x) * dy).sum(), x))
    check([derivatives.crossentropy(x, labels)[1]], slopes_of(lambda: derivatives.crossentropy(x, labels)[0].sum(), x))


@pytest.mark.parametrize("causal", (False, True))
def test_an_encoder_layer(rng, causal):
    tokens, features, hidden, heads = 3, 4, 5, 2
    x, dy = rng.normal(size=(2, tokens, features))
    shapes = {f"{name}.w": (features, features) for name in ("query", "key", "value", "output")}
    shapes |= {"up.w": (features, hidden), "down.w": (hidden, features), "up.bias": (1, hidden)}
    shapes |= {f"{name}.bias": (1, features) for name in ("query", "key", "value", "output", "down")}
    shapes |= {f"{name}.{scale}": (1, features) for name in ("first", "second") for scale in ("gamma", "beta")}
    values = {name: rng.normal(size=shape) for name, shape in shapes.items()}
    found = derivatives.encoder_gradients(x, values, heads, dy, causal)
    expected = slopes_of(lambda: (encoded(x, values, heads, causal) * dy).sum(), x, *values.values())
    check([found["x"], *(found[name] for name in values)], expected)


@pytest.mark.parametrize("function", ("gelu", "gelu_tanh"))
def test_gelu(rng, function):
    x = rng.normal(0, 2, (3, 4))
    check([derivatives.gelu(x, function)[1]], slopes_of(lambda: derivatives.gelu(x, function)[0].sum(), x))
