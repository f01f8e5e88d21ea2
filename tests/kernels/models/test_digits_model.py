"""Digits network in numpy; gradients against finite differences."""

import math

import numpy as np
import pytest

from neuroncore_rtl.kernels.models.digits import classify, gelu, gelu_slope, held_out, load, softmax, training_set
from neuroncore_rtl.kernels.models.digits.gradients import gradients, initial_digits, shard_gradients
from neuroncore_rtl.kernels.models.digits.train import save, train
from tests.oracles.slopes import slopes_of


def accuracy(layers):
    images, labels = held_out()
    return float((classify(layers, images).argmax(axis=1) == labels).mean())


def test_layers_lead_from_pixels_to_digits():
    layers = load()
    assert len(layers) == 2
    assert layers[0].weight.shape[0] == 64
    assert layers[0].weight.shape[1] == layers[1].weight.shape[0]
    assert layers[1].weight.shape[1] == 10
    for layer in layers:
        assert layer.bias.shape == layer.weight.shape[1:]
        assert layer.weight.dtype == layer.bias.dtype == np.float32
        assert np.isfinite(layer.weight).all()


def test_functions():
    x = np.linspace(-6, 6, 241)
    exact = [float(t * (1 + math.erf(t / math.sqrt(2))) / 2) for t in x]
    np.testing.assert_allclose(gelu(x), exact, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(gelu_slope(x), (gelu(x + 1e-6) - gelu(x - 1e-6)) / 2e-6, rtol=1e-7, atol=1e-8)
    rows = np.array([[0, np.log(3)], [1e4, 0]])
    np.testing.assert_allclose(softmax(rows), [[0.25, 0.75], [1, 0]])
    assert gelu(x.astype(np.float32)).dtype == softmax(rows.astype(np.float32)).dtype == np.float32


def test_images_are_scaled_and_split_once():
    images, labels = held_out()
    others, other_labels = training_set()
    assert images.shape == (360, 64)
    assert len(images) + len(others) == len(labels) + len(other_labels) == 1797
    assert images.dtype == np.float32
    assert (images.min(), images.max()) == (0, 1)
    assert set(labels.tolist()) == set(range(10))


def test_no_held_out_image_is_among_the_training_set():
    images, others = (np.unique(part()[0], axis=0) for part in (held_out, training_set))
    assert len(np.unique(np.concatenate((images, others)), axis=0)) == len(images) + len(others)


def test_shipped_weights_classify_the_held_out_images():
    assert accuracy(load()) >= 0.96


def test_training_again_reaches_the_accuracy(tmp_path):
    save(train(), tmp_path / "weights.npz")
    again = load(tmp_path / "weights.npz")
    assert accuracy(again) >= 0.96
    assert [layer.weight.shape for layer in again] == [layer.weight.shape for layer in load()]


def loss(parameters, images, labels):
    weight0, bias0, weight1, bias1 = parameters
    probabilities = softmax(gelu(images @ weight0 + bias0) @ weight1 + bias1)
    return -np.log(probabilities[np.arange(len(labels)), labels]).mean()


def test_gradients_are_the_loss_s_differences():
    rng = np.random.default_rng(1)
    parameters = [part + rng.normal(0, 0.1, part.shape) for part in initial_digits(rng, (5, 4, 3))]
    images, labels = rng.uniform(0, 1, (7, 5)), rng.integers(0, 3, 7)
    expected = slopes_of(lambda: loss(parameters, images, labels), *parameters, step=1e-5)
    for gradient, slope in zip(gradients(parameters, images, labels), expected, strict=True):
        assert gradient == pytest.approx(slope, rel=1e-6, abs=1e-9)


def test_gradients_have_the_precision_of_the_parameters():
    images, labels = (part[:9] for part in training_set())
    wide = initial_digits(np.random.default_rng(2), (64, 48, 10))
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
    parameters = [part.astype(np.float32).astype(np.float64) for part in initial_digits(rng, sizes)]
    chosen = rng.permutation(len(images))[: len(images) // ranks * ranks]
    expected = np.concatenate([part.ravel() for part in gradients(parameters, images[chosen], labels[chosen])])
    assert np.linalg.norm(found.astype(np.float64).mean(axis=0) - expected) < 1e-5 * np.linalg.norm(expected)
