"""An encoder layer on golden, queues in any order, any configuration, against float64."""

import numpy as np
import pytest

from neuroncore_rtl.golden.arith import decode
from neuroncore_rtl.kernels.program import build_image
from neuroncore_rtl.run.settings import UsageError
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.tb.cli.registry import command_named
from neuroncore_rtl.tb.tests.kernels.workbench import CoreWorkbench
from tests.kernels.running import finished, finished_ordered

CONFIGS = {"tiny": Config(rows=4, columns=4), "odd": Config(rows=5, columns=6), "tall": Config(rows=16, columns=4)}


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
@pytest.mark.parametrize("words", ["SEQ=1 DIM=1 HEADS=1 HIDDEN=1", "SEQ=7 DIM=12 HEADS=2 HIDDEN=9"])
def test_an_encoder_layer_is_near_float64(rng, config, words):
    bench, layer = CoreWorkbench(config), command_named("encoder")
    ((y, expected),) = layer.build(bench, layer.settings(words.split()), rng).values()
    image = build_image(bench.program, bench.contents)
    outcome = finished_ordered(image, rng)
    np.testing.assert_allclose(decode(y.elements(outcome.hbm), y.format), expected, atol=2.0**-4)


def test_more_features_than_a_bank_has_words(rng):
    """Normalisation goes over what several pieces of the sums have left."""
    bench, layer = CoreWorkbench(Config(rows=64, columns=32)), command_named("encoder")
    settings = layer.settings("SEQ=33 DIM=520 HEADS=10 HIDDEN=40".split())
    ((y, expected),) = layer.build(bench, settings, rng).values()
    outcome = finished(build_image(bench.program, bench.contents), rng)
    np.testing.assert_allclose(decode(y.elements(outcome.hbm), y.format), expected, atol=2.0**-4)


def test_heads_must_divide_the_features():
    layer = command_named("encoder")
    with pytest.raises(UsageError, match="heads must divide the 64 features of a token, not 5"):
        layer.run(layer.settings(["HEADS=5", "PRESET=tiny", "TARGET=model"]))
