"""How the loss of the digits network changes with its parameters, by backpropagation; and that of each of several
shards of the training set, which is what data-parallel training adds up."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from neuroncore_rtl.kernels.models.digits import gelu, gelu_slope, load, softmax, training_set

__all__ = ["gradients", "initial_digits", "shard_gradients"]


def initial_digits(rng: np.random.Generator, sizes: Sequence[int]) -> list[np.ndarray]:
    """Return the parameters that training begins with, float64: He's weights and biases of zero.

    Arguments:
        rng: of the weights.
        sizes: of the layers, from the pixels to the digits.

    Returns:
        weight [in, out] and bias [out] of every layer in turn.
    """
    parameters = []
    for inputs, outputs in pairwise(sizes):
        parameters += [rng.normal(0, np.sqrt(2 / inputs), (inputs, outputs)), np.zeros(outputs)]
    return parameters


def gradients(parameters: list[np.ndarray], images: np.ndarray, labels: np.ndarray) -> list[np.ndarray]:
    """Return how the mean cross entropy changes with each of the parameters, in their own precision.

    Arguments:
        parameters: weight and bias of both layers in turn.
        images, labels: see `kernels.models.digits.training_set`.
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
    """Return the gradient that each rank computes of its own shard before the first step of training.

    All shards have as many images, so the average over the ranks is the gradient over all shards' images; what does not
    go into equal shards is left out.

    Arguments:
        ranks: shards.
        seed: of the initial weights, and of which image is in which shard.

    Returns:
        float32 [ranks, parameters]: first weight, row by row, first bias, second weight, second bias.
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
