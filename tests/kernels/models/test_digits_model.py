"""The digits network as it is shipped: its layers, its held-out images, its accuracy in numpy, and how it is made."""

import math

import numpy as np

from neuroncore_rtl.kernels.models.digits import classify, gelu, gelu_slope, held_out, load, softmax, training_set
from neuroncore_rtl.kernels.models.digits.train import save, train


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
