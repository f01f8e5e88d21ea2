"""Values in SBUF: layouts of products and of the passes around them, and the way through HBM of what does not fit."""

from math import prod

import jax
import numpy as np
import pytest
from jax import numpy as jnp

from neuroncore_rtl.frontends.xla import jit
from neuroncore_rtl.frontends.xla.emit import plan
from neuroncore_rtl.spec.isa import Storage
from tests.frontends.xla.bounds import draw_floats
from tests.frontends.xla.results import compare

BOUND = 1e-5


def attention(x, weights, heads):
    tokens, features = x.shape
    q, k, v = (jnp.moveaxis((x @ w).reshape(tokens, heads, features // heads), 1, 0) for w in weights[:3])
    scores = q @ jnp.swapaxes(k, 1, 2) / np.float32(features**0.5)
    out = jnp.moveaxis(jax.nn.softmax(scores) @ v, 0, 1).reshape(tokens, features)
    return x + out @ weights[3]


@pytest.mark.parametrize(("tokens", "heads", "width"), [(6, 2, 4), (9, 3, 2), (5, 1, 7), (7, 2, 3), (4, 4, 1)])
def test_attention_of_any_shape(rng, tokens, heads, width):
    features = heads * width
    weights = [draw_floats(rng, features, features) for _ in range(4)]

    def mean_square(x, weights):
        y = attention(x, weights, heads)
        return jnp.mean(y**2), y

    function = jax.value_and_grad(mean_square, argnums=(0, 1), has_aux=True)
    compare(function, draw_floats(rng, tokens, features), weights, tolerance=BOUND)


def test_a_batch_of_products_and_norms(rng):
    def block(x, w, gain, back):
        y = jnp.einsum("bsd,dhw->bhsw", x, w)
        y = y / (1 + jnp.max(jnp.abs(y), axis=-1, keepdims=True)) * gain
        return jnp.einsum("bhsw,hwd->bsd", y, back) + x, jnp.sum(y, axis=(0, 2))

    args = draw_floats(rng, 2, 5, 6), draw_floats(rng, 6, 3, 4), draw_floats(rng, 3, 1, 4), draw_floats(rng, 3, 4, 6)
    compare(block, *args, tolerance=BOUND)


def test_values_between_products_stay_in_sbuf(rng):
    def mlp(x, up, bias, down):
        return jnp.tanh(x @ up + bias) @ down

    args = draw_floats(rng, 8, 8), draw_floats(rng, 8, 16), draw_floats(rng, 16), draw_floats(rng, 16, 8)
    compiled = jit(mlp, preset="tiny", target="golden", cache="").lower(*args).compile().compiled
    steps = [step.instruction for step in compiled.program.steps]
    stored = [one.shape for one in steps if any(region.storage == Storage.HBM for region in one.writes)]
    assert sum(map(prod, stored)) == 8 * 8


def test_a_vector_is_one_tile(rng):
    """A result of 64 elements on 16 partitions is one tile of 4 by way of HBM, not 4 tiles of single elements."""

    def step(x, w, b):
        return b - jnp.tanh((x @ w).sum(0))

    args = draw_floats(rng, 32, 16), draw_floats(rng, 16, 64), draw_floats(rng, 64)
    model = jit(step, preset="small", target="golden", cache="")
    np.testing.assert_allclose(model(*args), step(*args), atol=BOUND)
    steps = [one.instruction for one in model.compiled.program.steps]
    assert [one.shape for one in steps if one.name == "ACTIVATE" and one.function] == [(4,)]


def test_the_way_through_hbm_has_the_same_results(rng, monkeypatch):
    weights = [draw_floats(rng, 8, 8) for _ in range(4)]
    x = draw_floats(rng, 8, 8)

    def results():
        options = {"preset": "tiny", "target": "golden", "auto_cast": "matmult", "cache": ""}
        model = jit(lambda x, *weights: attention(x, weights, 2), **options)
        return np.asarray(model(x, *weights))

    found = results()
    monkeypatch.setattr(plan, "_SHARE", 1 << 30)
    np.testing.assert_array_equal(results(), found)


@pytest.mark.parametrize(
    ("of", "to"), [(np.float32, np.int8), (np.uint8, np.uint32), (jnp.bfloat16, np.int32), (np.int32, np.uint16)]
)
@pytest.mark.parametrize("target", ["golden", "rtl"])
def test_bits_of_another_width_start_anywhere(of, to, target):
    ratio, x = np.dtype(to).itemsize // np.dtype(of).itemsize, np.arange(-48, 49).astype(of)

    def function(x):
        jax.lax.dce_sink_p.bind(x, prevent_mlir_dce=True)  # no instruction
        part = x[1:].reshape(4, -1, ratio) if ratio else x[1:].reshape(4, -1)
        return jax.lax.bitcast_convert_type(part, to)[::-1] + 1

    compare(function, x, preset="nano", target=target)
