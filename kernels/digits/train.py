"""Train the digits network and write its weights: python -m kernels.digits.train [FILE]

One hidden layer, Adam, a fixed seed, a few seconds. Other versions of scikit-learn, numpy or its BLAS give weights that
differ in their last bits, and about the same accuracy.
"""

import sys
from pathlib import Path

import numpy as np
from sklearn.neural_network import MLPClassifier

from kernels.digits import WEIGHTS, Layer, classify, held_out, training_set

__all__ = ["main", "save", "train"]

HIDDEN = 48
EPOCHS = 150
LEARNING_RATE = 3e-3
WEIGHT_DECAY = 1e-2
SEED = 1


def train() -> list[Layer]:
    """Return the layers of a network trained on :func:`kernels.digits.training_set`."""
    images, labels = training_set()
    network = MLPClassifier((HIDDEN,), alpha=WEIGHT_DECAY, learning_rate_init=LEARNING_RATE, random_state=SEED)
    for _ in range(EPOCHS):
        network.partial_fit(images, labels, classes=range(10))
    return [
        Layer(weight.astype(np.float32), bias.astype(np.float32))
        for weight, bias in zip(network.coefs_, network.intercepts_, strict=True)
    ]


def save(layers: list[Layer], path: Path) -> None:
    """Write layers to a file for :func:`kernels.digits.load`."""
    arrays = {}
    for i, layer in enumerate(layers):
        arrays |= {f"weight{i}": layer.weight, f"bias{i}": layer.bias}
    np.savez(path, **arrays)


def main() -> None:
    """Train, write the weights to the file named on the command line or over the shipped ones, print the accuracy."""
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else WEIGHTS
    layers = train()
    save(layers, path)
    images, labels = held_out()
    right = int((classify(layers, images) == labels).sum())
    print(f"{path}: {right} of {len(labels)} held-out images right, {100 * right / len(labels):.2f} %")


if __name__ == "__main__":
    main()
