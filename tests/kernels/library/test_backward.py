"""Gradients that are added to given ones, and cross entropy without a label."""

import numpy as np
import pytest

from neuroncore_rtl.kernels.program import Program
from neuroncore_rtl.kernels.tiling.streamed import streamed
from neuroncore_rtl.kernels.tiling.transfer import load, store
from neuroncore_rtl.kernels.training import embedding
from neuroncore_rtl.kernels.training.crossentropy import crossentropy
from neuroncore_rtl.kernels.training.layernorm_backward import layernorm_backward
from neuroncore_rtl.spec.config import PRESETS
from neuroncore_rtl.spec.formats import BF16, FP32, INT32
from neuroncore_rtl.tb.tests.kernels import derivatives, workbench
from tests.kernels.running import TINY, every_config, hbm_after

PLACE = 2.0**-8  # half an ulp of BF16 at 1


@every_config
def test_gradients_are_added_to_what_is_there(rng, config):
    bench, (tokens, features, rows) = workbench.CoreWorkbench(config), (9, 6, 517)
    program = bench.program
    (x, values), (dy, slopes), (way, others) = (
        bench.place(name, rng.normal(size=(tokens, features)), BF16) for name in ("x", "dy", "way")
    )
    gamma, gains = bench.share("gamma", rng.normal(size=features), tokens)
    dgamma, dbeta, dtable = (
        bench.place(name, rng.normal(size=(n, features))) for name, n in (("dgamma", 1), ("dbeta", 1), ("dtable", rows))
    )
    numbers, drawn = bench.place("numbers", rng.integers(0, rows, (tokens, 1)), INT32)
    dx, dout = bench.room("dx", (tokens, features)), load(program, dy)
    before = load(program, dgamma[0]), load(program, dbeta[0])
    found = layernorm_backward(program, load(program, x), gamma, dout, load(program, way), before)
    table = embedding.embedding_backward(program, rows, load(program, numbers), dout, load(program, dtable[0]))
    places = (dx, dgamma[0], dbeta[0], dtable[0])
    for place, matrix in zip(places, (*found, table), strict=True):
        store(program, place, matrix)
    hbm = hbm_after(program, bench.contents, rng)
    exact = derivatives.layernorm_gradients(values, gains, slopes)
    summed = dtable[1].copy()
    np.add.at(summed, drawn[:, 0].astype(int), slopes)
    expected = (exact["dx"] + others, exact["dgamma"] + dgamma[1], exact["dbeta"] + dbeta[1], summed)
    for place, one in zip(places, expected, strict=True):
        np.testing.assert_allclose(place.elements(hbm).view(np.float32), one, atol=2 * PLACE * np.abs(one).max())


@pytest.mark.parametrize("config", [TINY, PRESETS["nano"]])  # nano has no divider
def test_cross_entropy_of_masked_classes_and_labels_that_are_none(rng, config):
    program = Program(config)
    logits, labels = program.space.hbm("logits", FP32, (2, 4)), program.space.hbm("labels", INT32, (2, 1))
    loss, slopes = program.space.hbm("loss", FP32, (2, 1)), program.space.hbm("slopes", FP32, (2, 4))
    streamed(program, crossentropy, [loss, slopes], [logits, labels])
    values = np.array([[1, 2, -np.inf, 0], [0] * 4], np.float32)
    right = np.array([[1], [-1]], np.int32)
    hbm = hbm_after(program, [(logits, values.view(np.uint32)), (labels, right.view(np.uint32))], rng)
    power = np.exp(values.astype(float))
    softmax = power / power.sum(1, keepdims=True)
    expected = softmax - [[0, 1, 0, 0], [0, 0, 0, 0]]
    np.testing.assert_allclose(loss.elements(hbm).view(np.float32)[:, 0], [-np.log(softmax[0, 1]), np.log(4)], 1e-6)
    np.testing.assert_allclose(slopes.elements(hbm).view(np.float32), expected, rtol=1e-5)
