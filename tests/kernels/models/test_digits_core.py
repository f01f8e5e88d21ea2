"""Digits network as one image of the core."""

from functools import cache

import numpy as np
import pytest

from neuroncore_rtl.kernels.models.digits import Layer, classify, held_out, load, network
from neuroncore_rtl.run.arrays import encode
from neuroncore_rtl.spec.config import Config, preset_named
from neuroncore_rtl.spec.formats import BF16, FP32
from neuroncore_rtl.tb.tests.kernels.digits import TARGET_DIFFERENCE, results_of, sizes_of
from tests.kernels.running import run_golden, run_ordered

SEED = 64
LAYERS = load()
IMAGES, _ = held_out()
WIDE = Config(rows=6, columns=20, dma_engines=3, hbm_ports=2)

classifier_of = cache(network.Classifier)


def run(config, images, threshold, rng=None, layers=LAYERS):
    classifier = classifier_of(config, len(images), sizes_of(layers))
    image = classifier.image(layers, images, encode, threshold)
    outcome = run_golden(image, rng)
    return *results_of(classifier, outcome.hbm), outcome.console.decode(), image, outcome


@pytest.mark.parametrize(
    ("config", "batch"),
    [(preset_named(name), batch) for name, batch in (("fpga", 5), ("tiny", 9), ("small", 120), ("full", 360))]
    + [(WIDE, 37), (Config(rows=32, columns=12), 1)],
    ids=lambda value: f"{value.rows}x{value.columns}" if isinstance(value, Config) else str(value),
)
def test_every_machine_and_batch_agree_with_numpy(rng, config, batch):
    images = IMAGES[-batch:]
    expected = classify(LAYERS, images)
    for threshold, fmt in ((0.0, BF16), (1.5, FP32)):
        digits, probabilities, *_ = run(config, images, threshold, rng)
        np.testing.assert_allclose(probabilities, expected, rtol=0, atol=TARGET_DIFFERENCE[fmt])
        assert np.array_equal(digits, probabilities.argmax(axis=1))
        assert np.array_equal(digits, expected.argmax(axis=1))


@pytest.mark.parametrize("more", (False, True))
def test_the_controller_branches_at_the_threshold(more):
    images = IMAGES[:24]
    _, first, *_ = run(WIDE, images, 0.0)
    least = np.sort(first.max(axis=1))[0]
    threshold = np.nextafter(least, np.float32(1)) if more else least
    _, probabilities, console, image, outcome = run(WIDE, images, threshold)
    spans = {range(block.address, block.address + 128 * block.count): block.section for block in image.blocks}
    executed = {section for _, address in outcome.records for span, section in spans.items() if address in span}
    assert executed == ({0, 1} if more else {0})
    assert len(outcome.records) == sum(block.count for block in image.blocks if block.section in executed)
    assert console.splitlines()[0] == f"bf16: unsure of {int(more)} of 24 images"
    assert len(console.splitlines()) == 1 + more
    assert np.array_equal(probabilities, first) != more


def test_what_the_controller_counts_is_in_hbm():
    images = IMAGES[:24]
    for threshold in (0.9, 0.99):
        _, exact, console, *_ = run(WIDE, images, threshold)
        _, rough, *_ = run(WIDE, images, 0.0)
        counts = [int((part.max(axis=1) < np.float32(threshold)).sum()) for part in (rough, exact)]
        assert counts[0] > 0
        lines = zip(network.NETWORK_PASSES, counts, strict=True)
        assert console == "".join(f"{fmt.name}: unsure of {count} of 24 images\n" for fmt, count in lines)


@pytest.mark.parametrize("threshold", (0.0, 1.5))
def test_nothing_is_left_to_chance_within_a_section(threshold):
    run_ordered(classifier_of(WIDE, 24, sizes_of(LAYERS)).image(LAYERS, IMAGES[:24], encode, threshold))


def test_refusals():
    with pytest.raises(ValueError, match="largest: tensors in SBUF must end by byte"):
        network.Classifier(preset_named("tiny"), 30_000, sizes_of(LAYERS))
    message = "probabilities must have at most [0-9]+ columns, one piece of a product, not 200"
    with pytest.raises(ValueError, match=message):
        network.Classifier(preset_named("tiny"), 8, (64, 48, 200))


def test_other_networks(rng):
    layers = [Layer(rng.normal(size=shape).astype(np.float32) / 4, rng.normal(size=shape[1]).astype(np.float32))
              for shape in ((11, 33), (33, 8))]  # fmt: skip
    images = rng.random((13, 11), np.float32)
    digits, probabilities, *_ = run(WIDE, images, 1.5, layers=layers)
    np.testing.assert_allclose(probabilities, classify(layers, images), rtol=0, atol=TARGET_DIFFERENCE[FP32])
    assert np.array_equal(digits, probabilities.argmax(axis=1))
