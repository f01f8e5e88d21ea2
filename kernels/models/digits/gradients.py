"""Gradients of the digits network by backpropagation, also per shard of the training set for data-parallel training."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from neuroncore_rtl.kernels.models.digits import gelu, gelu_slope, load, softmax, training_set

__all__ = ["gradients", "initial_digits", "shard_gradients"]


def initial_digits(rng: np.random.Generator, sizes: Sequence[int]) -> list[np.ndarray]:
    """Return the initial parameters, float64: He's weights [in, out] and zero biases [out], alternating."""
    parameters = []
    for inputs, outputs in pairwise(sizes):
        parameters += [rng.normal(0, np.sqrt(2 / inputs), (inputs, outputs)), np.zeros(outputs)]
    return parameters


def gradients(parameters: list[np.ndarray], images: np.ndarray, labels: np.ndarray) -> list[np.ndarray]:
    """Return the gradients of the mean cross entropy, in the precision of the parameters.

    Parameters are weight and bias of both layers, alternating; images and labels are as in `training_set`.
    """
    weight0, bias0, weight1, bias1 = parameters
    sums = images @ weight0 + bias0
    hidden = gelu(sums)
    errors = softmax(hidden @ weight1 + bias1)
    errors[np.arange(len(labels)), labels] -= 1
    errors /= len(labels)
    hidden_errors = errors @ weight1.T * gelu_slope(sums)
    return [images.T @ hidden_errors, hidden_errors.sum(0), hidden.T @ errors, errors.sum(0)]


def shard_gradients(ranks: int, seed: int) -> np.ndarray:
    """Return the gradient that each rank computes on its shard before the first training step.

    A row of the result, float32 [ranks, parameters], has the gradients of first weight, row by row, first bias, second
    weight and second bias. All shards have the same number of images, so the average over ranks is the gradient over
    all of them. Surplus images are dropped. `seed` determines the initial weights and the shards.
    """
    images, labels = training_set()
    rng = np.random.default_rng(seed)
    first, second = load()
    parameters = [
        part.astype(np.float32) for part in initial_digits(rng, (*first.weight.shape, second.weight.shape[1]))
    ]
    size = len(images) // ranks
    shards = rng.permutation(len(images))[: ranks * size].reshape(ranks, size)
    return np.stack(
        [np.concatenate([part.ravel() for part in gradients(parameters, images[s], labels[s])]) for s in shards]
    )
