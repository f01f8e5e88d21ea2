"""Language model in float64."""

import numpy as np

from neuroncore_rtl.kernels.models.charlm.network import Sizes, initial_charlm
from neuroncore_rtl.kernels.training.adamw import AdamW
from neuroncore_rtl.tb.tests.learning import language_model

SIZES = Sizes(characters=5, context=4, features=4, heads=2, hidden=3, layers=2)
STEP = 1e-6


def test_gradients_are_those_of_finite_differences(rng):
    # Nonzero biases, and normalisations that have an effect.
    parameters = {name: value + rng.normal(0, 0.3, value.shape) for name, value in initial_charlm(rng, SIZES).items()}
    window = np.array([1, 4, 1, 0, 2])
    loss, found = language_model.gradients(parameters, SIZES, window)
    assert loss == language_model.losses(parameters, SIZES, window).mean()
    assert {name: value.shape for name, value in found.items()} == SIZES.shapes()
    for name, value in parameters.items():
        for place in np.ndindex(value.shape):
            ends = []
            for step in (STEP, -STEP):
                value[place] += step
                ends.append(language_model.losses(parameters, SIZES, window).mean())
                value[place] -= step
            np.testing.assert_allclose(found[name][place], (ends[0] - ends[1]) / (2 * STEP), rtol=1e-4, atol=1e-8)


def test_a_text_that_repeats_is_learned_and_written(rng):
    text = np.resize([3, 0, 4, 1], 40)
    start = initial_charlm(rng, SIZES)
    windows = text[rng.integers(0, 30, (80, 2))[..., None] + np.arange(5)]
    losses, parameters = language_model.trained(start, SIZES, windows, AdamW(rate=0.03))
    assert losses[-1] < 0.2 < 1 < losses[0]
    assert list(language_model.written_text(parameters, SIZES, np.array([0, 4]), 3)) == [1, 3, 0]
