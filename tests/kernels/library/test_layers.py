"""The TEST of each layer and its gradients on golden, with any order of queues, against float64."""

import numpy as np
import pytest

from neuroncore_rtl.kernels.library.conv2d import ConvWindow, conv2d
from neuroncore_rtl.kernels.library.rope import angles
from neuroncore_rtl.kernels.models.transformer.decoder import owners
from neuroncore_rtl.kernels.program import Program, build_image, dma_copy
from neuroncore_rtl.run.arrays import encode
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.formats import BF16, FP32
from tests.kernels.running import CONFIGS, TINY, every_config, layer_results, read_values, run_golden

PLACE = 2.0**-8  # half an ulp of BF16 at 1

LAYERS = {
    "swiglu M=1 K=1 N=1": 2 * PLACE,
    "swiglu M=7 K=9 N=13": 2 * PLACE,
    "rope SEQ=1 HEADS=1 DIM=2": 2 * PLACE,
    "rope SEQ=7 HEADS=3 DIM=10": 2 * PLACE,
    "decoder SEQ=1 DIM=1 HEADS=1 HIDDEN=1": 4 * PLACE,
    "decoder SEQ=6 DIM=14 HEADS=7 HIDDEN=9": 4 * PLACE,
    "encoder SEQ=1 DIM=1 HEADS=1 HIDDEN=1": 4 * PLACE,
    "encoder SEQ=7 DIM=12 HEADS=2 HIDDEN=9": 4 * PLACE,
    "conv2d IMAGES=1 CHANNELS=1 HEIGHT=1 WIDTH=1 N=1 FILTER=1 PADDING=0": 2 * PLACE,
    "conv2d IMAGES=2 CHANNELS=6 HEIGHT=7 WIDTH=5 N=9 FILTER=3": 2 * PLACE,
    "conv2d IMAGES=1 CHANNELS=5 HEIGHT=9 WIDTH=8 N=3 FILTER=3 STRIDE=2": 2 * PLACE,
    "conv2d IMAGES=1 CHANNELS=3 HEIGHT=6 WIDTH=6 N=5 FILTER=5 STRIDE=3 PADDING=2": 2 * PLACE,
    # A row, and the rows, exceed a bank of PSUM.
    "conv2d IMAGES=1 CHANNELS=2 HEIGHT=3 WIDTH=512 N=2 FILTER=2 PADDING=9": 2 * PLACE,
    "conv2d IMAGES=1 CHANNELS=2 HEIGHT=40 WIDTH=30 N=2 FILTER=3 PADDING=0": 2 * PLACE,
    # Results are rounded once, sums of BF16 numbers not at all.
    "linear_backward M=1 K=1 N=1": 1.01 * PLACE,
    "linear_backward M=7 K=10 N=9": 1.01 * PLACE,
    "linear_backward M=19 K=6 N=23 LAYOUT=features ADD=1": 1.01 * PLACE,
    # The normalised rows are rounded before they are summed.
    "layernorm_backward M=1 N=3": 2 * PLACE,
    "layernorm_backward M=9 N=13": 2 * PLACE,
    "layernorm_backward M=6 N=515": 2 * PLACE,
    # Weights and the slopes of scores are rounded as well.
    "attention_backward SEQ=4 DIM=4 HEADS=1": 3 * PLACE,
    "attention_backward SEQ=9 KEYS=13 DIM=6 HEADS=2": 3 * PLACE,
    "attention_backward SEQ=7 KEYS=22 DIM=3 HEADS=3 CAUSAL=1": 3 * PLACE,
    "encoder_backward SEQ=5 DIM=6 HEADS=3 HIDDEN=7": 16 * PLACE,
    "encoder_backward SEQ=9 DIM=12 HEADS=2 HIDDEN=21 CAUSAL=1": 8 * PLACE,
    "embedding VOCAB=1 SEQ=3 DIM=1": 1.01 * PLACE,
    "embedding VOCAB=530 SEQ=21 DIM=7": 1.01 * PLACE,
}
"""By TEST and variables: bound on the error, relative to the largest result."""


def check(words, config, bound, rng, **options):
    for name, (found, exact) in layer_results(words, config, rng, **options).items():
        error = np.abs(found - exact).max() / np.abs(exact).max()
        assert error < bound, f"{name}: {error:.3g}"


@every_config
@pytest.mark.parametrize(("words", "bound"), LAYERS.items(), ids=LAYERS)
def test_layers_and_gradients_are_near_float64(rng, words, config, bound):
    check(words, config, bound, rng)


@pytest.mark.parametrize("words", [words for words in LAYERS if words.startswith(("swiglu", "rope"))])
def test_layers_on_an_array_with_more_columns_than_rows(rng, words):
    check(words, Config(rows=4, columns=12, dma_engines=3), LAYERS[words], rng)


@pytest.mark.parametrize("causal", (0, 1))
def test_gradients_of_attention_are_added_up_over_blocks_of_keys(rng, causal):
    config = Config(rows=4, columns=4, psum_words=16)
    check(f"attention_backward SEQ=25 DIM=10 HEADS=1 CAUSAL={causal}", config, 3 * PLACE, rng)


def test_more_features_than_a_bank_has_words(rng):
    check("encoder SEQ=33 DIM=520 HEADS=10 HIDDEN=40", Config(rows=64, columns=32), 4 * PLACE, rng, run=run_golden)


def test_angles_are_those_that_were_published():
    """The first pair rotates by a radian per token, the last pair by 1 / 10,000 ** (1 - 2 / width)."""
    np.testing.assert_allclose(angles(3, 4, first=5), [[5, 0.05], [6, 0.06], [7, 0.07]], rtol=1e-12)


def test_a_convolution_takes_what_one_has_left(rng):
    """A 1 x 1 filter of an identity copies its image; padding is added in SBUF."""
    program = Program(TINY)
    x, w = program.space.hbm("x", BF16, (2, 3, 4)), program.space.hbm("w", BF16, (1, 1, 2, 2))
    wide = program.space.hbm("wide", BF16, (3, 3, 2, 1))
    second = conv2d(program, conv2d(program, x, w), wide, window=ConvWindow(padding=(1, 1)), fmt=FP32)
    assert second.tiles[0].shape == (3, 4)
    y = program.space.hbm("y", FP32, (1, 3, 4))
    program.append(dma_copy(y, second.tiles[0]))
    values = rng.integers(-8, 9, x.shape)
    numbers = (x, values), (w, np.eye(2)[None, None]), (wide, np.ones(wide.shape))
    contents = [(tensor, encode(array, BF16)) for tensor, array in numbers]
    hbm = run_golden(build_image(program, contents), rng).hbm
    expected = np.lib.stride_tricks.sliding_window_view(np.pad(values.sum(0), 1), (3, 3)).sum((2, 3))
    assert np.array_equal(y.elements(hbm).view(np.float32)[0], expected)


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
