"""Train the digits network and write its weights: python -m neuroncore_rtl.kernels.models.digits.train [FILE].

One hidden layer, Adam on shuffled batches, a fixed seed, a few seconds. Other versions of numpy, scipy or BLAS give
weights that differ in their last bits, and about the same accuracy.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from neuroncore_rtl.kernels.models.digits import WEIGHTS, Layer, classify, held_out, training_set
from neuroncore_rtl.kernels.models.digits.gradients import gradients, initial_digits

__all__ = ["save", "train", "train_digits"]

HIDDEN = 48
EPOCHS = 60
BATCH = 64
LEARNING_RATE = 3e-3
WEIGHT_DECAY = 1e-3
MEAN_DECAY, SQUARE_DECAY = 0.9, 0.999
"""Decay of Adam's moments."""
SEED = 1


def train() -> list[Layer]:
    """Return the layers of a network trained on `kernels.models.digits.training_set`."""
    images, labels = training_set()
    rng = np.random.default_rng(SEED)
    sizes = images.shape[1], HIDDEN, int(labels.max()) + 1
    parameters = initial_digits(rng, sizes)
    moments = [(np.zeros_like(p), np.zeros_like(p)) for p in parameters]
    for step, batch in enumerate(_batches(rng, len(images)), start=1):
        slopes = gradients(parameters, images[batch], labels[batch])
        for parameter, gradient, (mean, square) in zip(parameters, slopes, moments, strict=True):
            gradient += WEIGHT_DECAY * parameter
            mean += (1 - MEAN_DECAY) * (gradient - mean)
            square += (1 - SQUARE_DECAY) * (gradient**2 - square)
            deviation = np.sqrt(square / (1 - SQUARE_DECAY**step)) + 1e-8
            parameter -= LEARNING_RATE * mean / (1 - MEAN_DECAY**step) / deviation
    weights = [parameter.astype(np.float32) for parameter in parameters]
    return [Layer(*weights[place : place + 2]) for place in range(0, len(weights), 2)]


def _batches(rng: np.random.Generator, images: int) -> Iterator[np.ndarray]:
    for _ in range(EPOCHS):
        order = rng.permutation(images)
        yield from (order[first : first + BATCH] for first in range(0, images, BATCH))


def save(layers: list[Layer], path: Path) -> None:
    """Write layers to a file for `kernels.models.digits.load`."""
    arrays = {}
    for i, layer in enumerate(layers):
        arrays |= {f"weight{i}": layer.weight, f"bias{i}": layer.bias}
    np.savez(path, **arrays)


def train_digits() -> None:
    """Train, write the weights to the file named on the command line (default: `WEIGHTS`), and print the accuracy."""
    path = Path(sys.argv[1]).with_suffix(".npz") if len(sys.argv) > 1 else WEIGHTS
    layers = train()
    save(layers, path)
    images, labels = held_out()
    right = int((classify(layers, images).argmax(axis=1) == labels).sum())
    print(f"{path}: {right} of {len(labels)} held-out images right, {100 * right / len(labels):.2f} %")


if __name__ == "__main__":
    train_digits()
