"""A transformer of one layer learns Shakespeare's sonnets by characters, then writes: the network of `TEST=charlm`.

python examples/jax/charlm.py [preset] [target] [steps]
"""

import sys

from neuroncore_rtl import jit  # first: in a clone it installs jax

# isort: split
import jax
import jax.numpy as jnp
import numpy as np

from neuroncore_rtl.kernels.models.charlm import sonnets
from neuroncore_rtl.kernels.models.charlm.network import Sizes, initial_charlm

TEXT, CONTEXT, HEADS, RATE = sonnets(), 64, 2, 0.01
SIZES = Sizes(characters=len(TEXT.characters), context=CONTEXT, features=32, heads=HEADS, hidden=64, layers=1)


def dense(p, name, x):
    return x @ p[name + ".w"] + p[name + ".bias"]


def norm(p, name, x):
    x = x - x.mean(-1, keepdims=True)
    return x * jax.lax.rsqrt(jnp.square(x).mean(-1, keepdims=True) + 1e-5) * p[name + ".gamma"] + p[name + ".beta"]


def attention(p, x):
    q, k, v = (dense(p, f"layer0.{name}", x).reshape(len(x), HEADS, -1) for name in ("query", "key", "value"))
    scores = jnp.einsum("qhd,khd->hqk", q, k) / q.shape[-1] ** 0.5
    weights = jax.nn.softmax(jnp.where(jnp.tri(len(x), dtype=bool), scores, -1e30))
    return dense(p, "layer0.output", jnp.einsum("hqk,khd->qhd", weights, v).reshape(x.shape))


def logits(p, characters):
    x = p["embedding"][characters] + p["position"][: len(characters)]
    x = norm(p, "layer0.first", x + attention(p, x))
    hidden = jax.nn.gelu(dense(p, "layer0.up", x), approximate=False)
    return dense(p, "output", norm(p, "layer0.second", x + dense(p, "layer0.down", hidden)))


def loss(p, window):
    found = jax.nn.log_softmax(logits(p, window[:-1]))
    return -jnp.take_along_axis(found, window[1:, None], axis=1).mean()


def step(p, m, v, number, window):
    value, g = jax.value_and_grad(loss)(p, window)
    m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
    v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, g)
    pace, scale = RATE / (1 - 0.9**number), 1 / (1 - 0.999**number)
    p = jax.tree.map(lambda p, m, v: p - RATE * 0.01 * p - pace * m / (jnp.sqrt(v * scale) + 1e-8), p, m, v)
    return value, p, m, v


def main(preset: str = "small", target: str = "golden", steps: str = "40") -> list[float]:
    rng, losses = np.random.default_rng(1), []
    p = {name: value.astype(np.float32) for name, value in initial_charlm(rng, SIZES).items()}
    starts = rng.integers(0, len(TEXT.numbers) - CONTEXT, int(steps))
    m = v = jax.tree.map(np.zeros_like, p)
    machine = {"preset": preset, "target": target, "auto_cast": "matmult"}
    train, read = jit(step, **machine), jit(logits, **machine)
    for number, start in enumerate(starts, 1):
        window = TEXT.numbers[start : start + CONTEXT + 1].astype(np.int32)
        value, p, m, v = train(p, m, v, np.float32(number), window)
        losses.append(float(value))
        print(f"step {number:2}: loss {value:.4f}, cycles {train.result.cycles}", flush=True)
    text = "Shall I"
    while len(text) < CONTEXT:
        padded = TEXT.encode(text.ljust(CONTEXT)).astype(np.int32)
        text += TEXT.characters[int(np.argmax(read(p, padded)[len(text) - 1]))]
    print(text)
    return losses


if __name__ == "__main__":
    main(*sys.argv[1:])
