"""Decoder with its cache against the causal layer."""

import numpy as np
import pytest

from neuroncore_rtl.kernels.models.transformer.decoder import owners
from neuroncore_rtl.kernels.program import Program, build_image, dma_copy
from neuroncore_rtl.spec.config import Config
from tests.kernels.running import layer_results, read_values, run_golden

CONFIGS = {"tiny": Config(rows=4, columns=4), "odd": Config(rows=5, columns=6, dma_engines=3)}


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
@pytest.mark.parametrize("words", ["SEQ=1 DIM=1 HEADS=1 HIDDEN=1", "SEQ=6 DIM=14 HEADS=7 HIDDEN=9"])
def test_tokens_are_those_of_the_whole_text(rng, config, words):
    ((found, expected),) = layer_results(f"decoder {words}", config, rng).values()
    np.testing.assert_allclose(found, expected, atol=2**-6 * max(1, np.abs(expected).max()))


def test_every_feature_has_one_owner(rng):
    program = Program(CONFIGS["odd"])
    own = owners(program, 21, 7)
    for matrix, transposed in ((own.by_features, False), (own.by_heads, True)):
        out = program.space.hbm("out", matrix.format, matrix.shape)
        for part, tile in zip(matrix.parts, matrix.tiles, strict=True):
            program.append(dma_copy(out[part], tile))
        expected = np.repeat(np.eye(7), 3, axis=0)
        found = read_values(out, run_golden(build_image(program), rng).hbm)
        assert np.array_equal(found, expected.T if transposed else expected)
    with pytest.raises(ValueError, match="heads must divide the 21 features of a token, not 4"):
        owners(program, 21, 4)
