"""Encoder layer on golden, with any order of queues, against float64."""

import numpy as np
import pytest

from neuroncore_rtl.run.settings import UsageError
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.tb.cli.registry import command_named
from tests.kernels.running import layer_results, run_golden

CONFIGS = {"tiny": Config(rows=4, columns=4), "odd": Config(rows=5, columns=6), "tall": Config(rows=16, columns=4)}


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
@pytest.mark.parametrize("words", ["SEQ=1 DIM=1 HEADS=1 HIDDEN=1", "SEQ=7 DIM=12 HEADS=2 HIDDEN=9"])
def test_an_encoder_layer_is_near_float64(rng, config, words):
    ((found, expected),) = layer_results(f"encoder {words}", config, rng).values()
    np.testing.assert_allclose(found, expected, atol=2.0**-4)


def test_more_features_than_a_bank_has_words(rng):
    words = "encoder SEQ=33 DIM=520 HEADS=10 HIDDEN=40"
    ((found, expected),) = layer_results(words, Config(rows=64, columns=32), rng, run_golden).values()
    np.testing.assert_allclose(found, expected, atol=2.0**-4)


def test_heads_must_divide_the_features():
    layer = command_named("encoder")
    with pytest.raises(UsageError, match="heads must divide the 64 features of a token, not 5"):
        layer.run(layer.settings(["HEADS=5", "PRESET=tiny", "TARGET=model"]))
