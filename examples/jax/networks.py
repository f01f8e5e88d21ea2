"""Four small networks of well-known kinds, each trained for some steps on the machine.

python examples/jax/networks.py vit|resnet|lstm|diffusion [preset] [target] [steps]
"""

import sys
from functools import partial

from neuroncore_rtl import jit  # first: in a clone it installs jax

# isort: split
import jax
import jax.numpy as jnp
import numpy as np

BATCH, SIDE, CLASSES = 8, 8, 4


def weights(rng, *shape):
    return (rng.normal(size=shape) / np.sqrt(np.prod(shape[:-1]))).astype(np.float32)


def norm(x):
    x = x - x.mean(-1, keepdims=True)
    return x * jax.lax.rsqrt(jnp.square(x).mean(-1, keepdims=True) + 1e-5)


def cross_entropy(logits, labels):
    return -jnp.mean(jnp.sum(jax.nn.one_hot(labels, CLASSES) * jax.nn.log_softmax(logits), axis=-1))


def pictures(rng):
    """Return pictures of stripes, [BATCH, SIDE, SIDE], and their directions as labels."""
    labels = rng.integers(0, CLASSES, BATCH).astype(np.int32)
    rows, columns = np.mgrid[:SIDE, :SIDE]
    waves = np.stack([rows, columns, rows + columns, rows - columns])[labels] * np.pi / 2
    return np.sin(waves + rng.uniform(0, 6, (BATCH, 1, 1))).astype(np.float32), labels


class Vit:
    """Vision transformer: 16 patches of 2 x 2 pixels, a block of two heads, the mean's class."""

    features = 16

    def parameters(self, rng):
        f = self.features
        shapes = {"patch": (4, f), "place": (16, f), "qkv": (f, 3 * f), "out": (f, f), "up": (f, 2 * f)}
        return {name: weights(rng, *shape) for name, shape in (shapes | {"down": (2 * f, f), "head": (f, 4)}).items()}

    batch = staticmethod(pictures)

    def loss(self, p, images, labels):
        patches = images.reshape(BATCH, 4, 2, 4, 2).transpose(0, 1, 3, 2, 4).reshape(BATCH, 16, 4)
        x = patches @ p["patch"] + p["place"]
        q, k, v = jnp.split((norm(x) @ p["qkv"]).reshape(BATCH, 16, 2, -1), 3, axis=-1)
        mixed = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k) / q.shape[-1] ** 0.5)
        x = x + jnp.einsum("bhqk,bkhd->bqhd", mixed, v).reshape(x.shape) @ p["out"]
        x = x + jax.nn.gelu(norm(x) @ p["up"]) @ p["down"]
        return cross_entropy(norm(x).mean(1) @ p["head"], labels)


class Resnet:
    """Two residual blocks of 3 x 3 convolutions, the second with stride 2 and twice the channels."""

    def parameters(self, rng):
        shapes = {"stem": (3, 3, 1, 8), "a": (3, 3, 8, 8), "b": (3, 3, 8, 8), "c": (3, 3, 8, 16), "d": (3, 3, 16, 16)}
        return {
            name: weights(rng, *shape) for name, shape in (shapes | {"skip": (1, 1, 8, 16), "head": (16, 4)}).items()
        }

    batch = staticmethod(pictures)

    def loss(self, p, images, labels):
        def conv(x, name, stride=1):
            return jax.lax.conv_general_dilated(
                x, p[name], (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
            )

        def block(x, first, second, skip, stride):
            return jax.nn.relu(skip + conv(jax.nn.relu(norm(conv(x, first, stride))), second))

        x = jax.nn.relu(norm(conv(images[..., None], "stem")))
        x = block(x, "a", "b", x, 1)
        x = block(x, "c", "d", conv(x, "skip", 2), 2)
        return cross_entropy(x.mean((1, 2)) @ p["head"], labels)


class Lstm:
    """Recurrent network that reads a picture by rows; the loop over rows is a loop of the controller."""

    hidden = 16

    def parameters(self, rng):
        h = self.hidden
        return {"in": weights(rng, SIDE, 4 * h), "state": weights(rng, h, 4 * h), "head": weights(rng, h, CLASSES)}

    batch = staticmethod(pictures)

    def loss(self, p, images, labels):
        def cell(carry, row):
            state, memory = carry
            i, f, o, g = jnp.split(row @ p["in"] + state @ p["state"], 4, axis=1)
            memory = jax.nn.sigmoid(f + 1) * memory + jax.nn.sigmoid(i) * jnp.tanh(g)
            return (jax.nn.sigmoid(o) * jnp.tanh(memory), memory), None

        zeros = jnp.zeros((BATCH, self.hidden))
        (state, _), _ = jax.lax.scan(cell, (zeros, zeros), images.transpose(1, 0, 2))
        return cross_entropy(state @ p["head"], labels)


class Diffusion:
    """Denoising diffusion: predicts the noise in a picture from the picture and the noise's strength.

    The noise is drawn on the machine: `jax.random`'s bits.
    """

    hidden = 64

    def parameters(self, rng):
        pixels, h = SIDE * SIDE, self.hidden
        shapes = {"in": (pixels, h), "time": (8, h), "middle": (h, h), "out": (h, pixels)}
        return {name: weights(rng, *shape) for name, shape in shapes.items()}

    def batch(self, rng):
        return pictures(rng)[0].reshape(BATCH, -1), np.uint32([0, rng.integers(1 << 31)])

    def loss(self, p, images, key):
        first, second = jax.random.split(key)
        strength = jax.random.uniform(first, (BATCH, 1))
        noise = jax.random.normal(second, images.shape)
        noisy = jnp.sqrt(1 - strength) * images + jnp.sqrt(strength) * noise
        waves = strength * jnp.exp2(jnp.arange(4.0))
        x = noisy @ p["in"] + jnp.concatenate([jnp.sin(waves), jnp.cos(waves)], axis=1) @ p["time"]
        x = x + jax.nn.silu(norm(x) @ p["middle"])
        return jnp.mean(jnp.square(jax.nn.silu(x) @ p["out"] - noise))


NETWORKS = {"vit": Vit, "resnet": Resnet, "lstm": Lstm, "diffusion": Diffusion}


def step(network, parameters, speeds, *batch):
    value, slopes = jax.value_and_grad(network.loss)(parameters, *batch)
    speeds = jax.tree.map(lambda v, g: 0.9 * v + g, speeds, slopes)
    return value, jax.tree.map(lambda p, v: p - 0.05 * v, parameters, speeds), speeds


def main(name: str = "vit", preset: str = "small", target: str = "golden", steps: str = "40") -> list[float]:
    network, rng, losses = NETWORKS[name](), np.random.default_rng(0), []
    parameters = network.parameters(rng)
    speeds = jax.tree.map(np.zeros_like, parameters)
    train = jit(partial(step, network), preset=preset, target=target, auto_cast="matmult")
    for number in range(int(steps)):
        value, parameters, speeds = train(parameters, speeds, *network.batch(rng))
        losses.append(float(value))
        result = train.result
        print(f"step {number:2}: loss {value:.4f}, cycles {result.cycles}, bit-exact {result.bit_exact}", flush=True)
    print(train.report)
    return losses


if __name__ == "__main__":
    main(*sys.argv[1:])
