"""A network of two layers learns real handwritten digits; each step of AdamW is one call of the machine.

python examples/jax/digits.py [preset] [target] [epochs]
"""

import sys

from neuroncore_rtl import jit  # first: in a clone it installs jax

# isort: split
import jax
import jax.numpy as jnp
import numpy as np

from neuroncore_rtl.kernels.models import digits
from neuroncore_rtl.run.sim.packages import require_packages

BATCH, HIDDEN, RATE, DECAY = 96, 64, 2e-2, 1e-2


def scores(params, images):
    return jax.nn.relu(images @ params["w1"] + params["b1"]) @ params["w2"] + params["b2"]


def loss(params, images, labels):
    logits = jax.nn.log_softmax(scores(params, images))
    return -jnp.mean(jnp.sum(jax.nn.one_hot(labels, 10) * logits, axis=1))


def step(params, moments, number, rate, images, labels):
    value, slopes = jax.value_and_grad(loss)(params, images, labels)
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, moments[0], slopes)
    second = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, moments[1], slopes)

    def moved(p, m, v):
        return p - rate * (m / (1 - 0.9**number) / (jnp.sqrt(v / (1 - 0.99**number)) + 1e-8) + DECAY * p)

    return value, jax.tree.map(moved, params, first, second), (first, second)


def main(preset: str = "small", target: str = "golden", epochs: str = "12") -> float:
    require_packages("references")  # the images are scikit-learn's
    (images, labels), (others, truth) = digits.training_set(), digits.held_out()
    rng, number, right = np.random.default_rng(0), 0, 0.0
    params = {
        "w1": (rng.normal(size=(64, HIDDEN)) / 8).astype(np.float32),
        "b1": np.zeros(HIDDEN, np.float32),
        "w2": (rng.normal(size=(HIDDEN, 10)) / 8).astype(np.float32),
        "b2": np.zeros(10, np.float32),
    }
    moments = (jax.tree.map(np.zeros_like, params),) * 2
    learn, look = jit(step, preset=preset, target=target), jit(scores, preset=preset, target=target)
    for epoch in range(int(epochs)):
        for batch in rng.permutation(len(images))[: len(images) // BATCH * BATCH].reshape(-1, BATCH):
            number += 1
            arrays = (
                np.float32(number),
                np.float32(RATE * (1 - epoch / int(epochs))),
                images[batch],
                labels[batch].astype(np.int32),
            )
            value, params, moments = learn(params, moments, *arrays)
        right = float(np.mean(np.argmax(look(params, others), 1) == truth))
        print(f"epoch {epoch + 1:2}: loss {value:.4f}, {right:.1%} of {len(others)} other digits right", flush=True)
    print(learn.report)
    return right


if __name__ == "__main__":
    main(*sys.argv[1:])
