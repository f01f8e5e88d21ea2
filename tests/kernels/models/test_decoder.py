"""Owners of features in the decoder's cache."""

import numpy as np
import pytest

from neuroncore_rtl.kernels.models.transformer.decoder import owners
from neuroncore_rtl.kernels.program import Program, build_image, dma_copy
from tests.kernels.running import CONFIGS, read_values, run_golden


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
