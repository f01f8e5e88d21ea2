"""Training of a network written in JAX: two classes of points, a hidden layer, momentum; every step on the machine."""

import sys

from neuroncore_rtl import jit  # first: in a clone it installs jax

# isort: split
import jax
import jax.numpy as jnp
import numpy as np

POINTS, HIDDEN, STEPS = 64, 16, 12


def loss(params, points, labels):
    hidden = jax.nn.gelu(points @ params["up"] + params["shift"], approximate=False)
    return jnp.mean(jnp.square(jnp.squeeze(hidden @ params["down"], 1) - labels))


def step(params, speeds, points, labels):
    value, slopes = jax.value_and_grad(loss)(params, points, labels)
    speeds = jax.tree.map(lambda v, g: 0.9 * v + g, speeds, slopes)
    return value, jax.tree.map(lambda p, v: p - 0.02 * v, params, speeds), speeds


def main(preset: str = "tiny", target: str = "rtl") -> None:
    rng = np.random.default_rng(1)
    points = rng.normal(size=(POINTS, 2)).astype(np.float32)
    labels = np.where(points[:, 0] * points[:, 1] > 0, 1, -1).astype(np.float32)
    params = {
        "up": rng.normal(size=(2, HIDDEN)).astype(np.float32),
        "shift": np.zeros(HIDDEN, np.float32),
        "down": rng.normal(size=(HIDDEN, 1)).astype(np.float32) / 4,
    }
    speeds = jax.tree.map(np.zeros_like, params)
    train = jit(step, preset=preset, target=target)
    for number in range(STEPS):
        value, params, speeds = train(params, speeds, points, labels)
        result = train.result
        print(f"step {number:2}: loss {value:.4f}, cycles {result.cycles}, bit-exact {result.bit_exact}")
    print(train.report)


if __name__ == "__main__":
    main(*sys.argv[1:])
