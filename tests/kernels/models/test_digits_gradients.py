"""The gradients of the digits network are what the loss does when a parameter changes, and shards are equal parts."""

import numpy as np
import pytest

from neuroncore_rtl.kernels.models.digits import gelu, load, softmax, training_set
from neuroncore_rtl.kernels.models.digits.gradients import gradients, initial, shard_gradients

STEP = 1e-5


def loss(parameters, images, labels):
    """Return the mean cross entropy."""
    weight0, bias0, weight1, bias1 = parameters
    probabilities = softmax(gelu(images @ weight0 + bias0) @ weight1 + bias1)
    return -np.log(probabilities[np.arange(len(labels)), labels]).mean()


def test_gradients_are_the_loss_s_differences():
    rng = np.random.default_rng(1)
    parameters = [part + rng.normal(0, 0.1, part.shape) for part in initial(rng, (5, 4, 3))]
    images, labels = rng.uniform(0, 1, (7, 5)), rng.integers(0, 3, 7)
    for part, gradient in zip(parameters, gradients(parameters, images, labels), strict=True):
        assert part.shape == gradient.shape
        for place in np.ndindex(part.shape):
            kept = part[place]
            ends = []
            for step in (STEP, -STEP):
                part[place] = kept + step
                ends.append(loss(parameters, images, labels))
            part[place] = kept
            assert gradient[place] == pytest.approx((ends[0] - ends[1]) / (2 * STEP), rel=1e-6, abs=1e-9)


def test_gradients_have_the_precision_of_the_parameters():
    images, labels = (part[:9] for part in training_set())
    wide = initial(np.random.default_rng(2), (64, 48, 10))
    narrow = [part.astype(np.float32) for part in wide]
    for exact, found in zip(gradients(wide, images, labels), gradients(narrow, images, labels), strict=True):
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, exact, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("ranks", [2, 64])
def test_shards_average_to_the_gradient_of_their_images(ranks):
    sizes = (64, 48, 10)
    assert [layer.weight.shape for layer in load()] == [sizes[:2], sizes[1:]]
    found = shard_gradients(ranks, 3)
    assert found.shape == (ranks, 64 * 48 + 48 + 48 * 10 + 10) and found.dtype == np.float32
    assert len(np.unique(found, axis=0)) == ranks
    images, labels = training_set()
    rng = np.random.default_rng(3)
    parameters = [part.astype(np.float32).astype(np.float64) for part in initial(rng, sizes)]
    chosen = rng.permutation(len(images))[: len(images) // ranks * ranks]
    expected = np.concatenate([part.ravel() for part in gradients(parameters, images[chosen], labels[chosen])])
    average = found.astype(np.float64).mean(axis=0)
    assert np.linalg.norm(average - expected) < 1e-5 * np.linalg.norm(expected)
