"""The TEST of each layer on golden, with any order of queues, against float64."""

import numpy as np
import pytest

from neuroncore_rtl.kernels.library.rope import angles, rope
from neuroncore_rtl.kernels.library.swiglu import swiglu_t
from neuroncore_rtl.kernels.program import Program
from neuroncore_rtl.kernels.tiling.transfer import load
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.formats import BF16, FP32
from tests.kernels.running import layer_results

CONFIGS = {
    "tiny": Config(rows=4, columns=4),
    "odd": Config(rows=5, columns=6),
    "wide": Config(rows=4, columns=12, dma_engines=3),
}


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
@pytest.mark.parametrize(
    "words", ["swiglu M=1 K=1 N=1", "swiglu M=7 K=9 N=13", "rope SEQ=1 HEADS=1 DIM=2", "rope SEQ=7 HEADS=3 DIM=10"]
)
def test_layers_are_near_float64(rng, config, words):
    for found, expected in layer_results(words, config, rng).values():
        np.testing.assert_allclose(found, expected, atol=2**-7 * max(1, np.abs(expected).max()))


def test_angles_are_those_that_were_published():
    """The first pair rotates by a radian per token, the last pair by 1 / 10,000 ** (1 - 2 / width)."""
    np.testing.assert_allclose(angles(3, 4, first=5), [[5, 0.05], [6, 0.06], [7, 0.07]], rtol=1e-12)


def test_refusals():
    program = Program(CONFIGS["tiny"])
    x, table = (load(program, program.space.hbm(name, fmt, (4, 6))) for name, fmt in (("x", BF16), ("table", FP32)))
    message = r"turned: x, cosines and sines must be .*, not \[4, 6\], \[4, 6\] and \[4, 6\]"
    with pytest.raises(ValueError, match=message):
        rope(program, x, table, table)
    gate, up = program.space.hbm("gate", BF16, (4, 8)), program.space.hbm("up", BF16, (4, 9))
    with pytest.raises(ValueError, match=r"swiglu_t: gate and up must have one shape, not \[4, 8\] and \[4, 9\]"):
        swiglu_t(program, gate, up, x)
