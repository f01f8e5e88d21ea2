"""Handwritten digits: a multilayer perceptron, trained by `kernels.models.digits.train`, and held-out images.

The images are scikit-learn's `load_digits`: 1,797 of 8 x 8 pixels with 17 levels. Every fifth one is held out.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np

__all__ = [
    "HELD_OUT_STEP", "WEIGHTS", "Layer", "classify", "gelu", "gelu_slope", "held_out", "load", "softmax",
    "training_set",
]  # fmt: skip

WEIGHTS = Path(__file__).with_name("weights.npz")
"""Output of `python -m neuroncore_rtl.kernels.models.digits.train`."""

HELD_OUT_STEP = 5
"""One image in this number is held out of the training."""

PIXEL_MAX = 16
"""Brightest level; a power of two, so that a scaled pixel is exact also in BF16."""


class Layer(NamedTuple):
    """Fully connected layer: weight float32 [in, out] and bias float32 [out]."""

    weight: np.ndarray
    bias: np.ndarray


def load(path: Path = WEIGHTS) -> list[Layer]:
    """Return the trained layers in order; GELU is between layers, softmax after the last one."""
    with np.load(path) as arrays:
        return [Layer(arrays[f"weight{i}"], arrays[f"bias{i}"]) for i in range(len(arrays.files) // 2)]


def gelu(values: np.ndarray) -> np.ndarray:
    """Return x * Phi(x), where Phi is the standard normal distribution function."""
    return values * _phi(values)


def gelu_slope(values: np.ndarray) -> np.ndarray:
    """Return the derivative of `gelu`."""
    return _phi(values) + values * np.exp(-(values**2) / 2) / values.dtype.type(np.sqrt(2 * np.pi))


def _phi(values: np.ndarray) -> np.ndarray:
    from scipy.special import erf

    return (1 + erf(values / np.sqrt(values.dtype.type(2)))) / 2


def softmax(scores: np.ndarray) -> np.ndarray:
    """Return the probabilities of each row of scores."""
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def classify(layers: list[Layer], images: np.ndarray) -> np.ndarray:
    """Return the probability of each digit for images [n, 64], float32 [n, 10], computed by numpy in FP32."""
    values = images
    for layer in layers[:-1]:
        values = gelu(values @ layer.weight + layer.bias)
    return softmax(values @ layers[-1].weight + layers[-1].bias)


def held_out() -> tuple[np.ndarray, np.ndarray]:
    """Return the 360 held-out images, float32 [360, 64] from 0 to 1, and their labels, int64 [360]."""
    return _images(held=True)


def training_set() -> tuple[np.ndarray, np.ndarray]:
    """Return the 1,437 training images and their labels, in the formats of `held_out`."""
    return _images(held=False)


def _images(held: bool) -> tuple[np.ndarray, np.ndarray]:
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    chosen = (np.arange(len(labels)) % HELD_OUT_STEP == 0) == held
    return (images[chosen] / PIXEL_MAX).astype(np.float32), labels[chosen].astype(np.int64)
