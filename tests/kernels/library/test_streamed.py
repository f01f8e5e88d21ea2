"""Row kernels from HBM to HBM on golden, against float64; largest elements of rows and their indices."""

from math import sqrt

import numpy as np
import pytest

from neuroncore_rtl.golden.arith import decode
from neuroncore_rtl.kernels.library.matmul import matmul
from neuroncore_rtl.kernels.library.softmax import softmax
from neuroncore_rtl.kernels.library.topk import topk
from neuroncore_rtl.kernels.program import Program, instructions
from neuroncore_rtl.kernels.tiling.rows import Rows
from neuroncore_rtl.kernels.tiling.streamed import TILES, streamed
from neuroncore_rtl.run.arrays import encode
from neuroncore_rtl.spec import formats, isa
from neuroncore_rtl.spec.config import Config, preset_named
from neuroncore_rtl.spec.formats import BF16, FP32, INT32
from neuroncore_rtl.tb.tests.kernels import kernels, workbench
from tests.kernels.running import hbm_after, read_values

SEED = 31
TINY = preset_named("tiny")
ODD = Config(rows=5, columns=6, dma_engines=1, hbm_ports=1)

PLACE = 2.0**-24  # half an ulp of FP32 at 1: the relative error bound of one rounding

BOUND = 16 * PLACE
"""Error bound relative to the largest result. A kernel has about six consecutive roundings, some by functions of
0.6 ulp, and the roundings of a sum of 24 elements or of three steps' moments, whose errors have a standard deviation
of PLACE / sqrt(3) each; four standard deviations of the sum are 11.3 PLACE."""

TIGHTER = {"topk": 0, "gelu": 4.4 * PLACE}
"""Smaller bounds: topk does not compute, so it has no error; gelu's function has an error of 1.7 ulp, and its gradient
adds one product."""


class Scaled:
    def __init__(self, rng, scale):
        self.normal = lambda *arguments: rng.normal(*arguments) * scale
        self.integers = rng.integers


# At the small scales the epsilons of the norms and of adamw are as large as the numbers to which they are added.
@pytest.mark.parametrize("scale", (1, 2.0**-9, 2.0**-20))
@pytest.mark.parametrize("shape", [(1, 16), (43, 24)], ids=lambda shape: "x".join(map(str, shape)))
@pytest.mark.parametrize("config", (TINY, ODD), ids=("tiny", "odd"))
@pytest.mark.parametrize("kernel", kernels.TESTS, ids=lambda bench: bench.name)
def test_every_kernel_is_near_float64(rng, kernel, config, shape, scale):
    settings = kernel.settings([f"M={shape[0]}", f"N={shape[1]}", "DTYPE=fp32", f"SEED={SEED}"], ROUND="rne")
    bench = workbench.CoreWorkbench(config)
    references = kernel.build(bench, settings, Scaled(rng, scale))
    hbm = hbm_after(bench.program, bench.contents, rng)
    for matrix, reference in references.values():
        error = np.abs(read_values(matrix, hbm) - reference).max()
        assert error <= TIGHTER.get(kernel.name, BOUND) * np.abs(reference).max()


def test_more_tiles_than_places_and_rows_too_long_for_as_many(rng):
    for columns, tiles in ((8, TILES), (9000, 1)):
        program = Program(TINY)
        x, y = (program.space.hbm(name, formats.BF16, (6 * TINY.partitions, columns)) for name in "xy")
        streamed(program, softmax, [y], [x])
        assert program.end(isa.Storage.SBUF) >= tiles * 2 * columns * 2
        codes = encode(rng.normal(size=x.shape), formats.BF16)
        found, powers = read_values(y, hbm_after(program, [(x, codes)], rng)), np.exp(decode(codes, formats.BF16))
        np.testing.assert_allclose(found, powers / powers.sum(1, keepdims=True), rtol=2**-7)


def test_a_row_that_does_not_fit_is_refused():
    program = Program(TINY)
    wide, long = (program.space.hbm(name, formats.FP32, (4, 30_000)) for name in ("wide", "long"))
    with pytest.raises(ValueError, match=r"SBUF must have room for its tiles, .*powers\[0:4\] 120,000.*, not 196,608"):
        streamed(program, softmax, [wide], [long])
        program.records()


@pytest.mark.parametrize("config", (TINY, ODD), ids=("tiny", "odd"))
def test_attention_is_two_products_and_a_softmax(rng, config):
    program, queries, keys, width = Program(config), 21, 37, 10
    space = program.space
    q, k = space.hbm("q", BF16, (width, queries)), space.hbm("k", BF16, (width, keys))
    v, out = space.hbm("v", BF16, (keys, width)), space.hbm("out", FP32, (queries, width))
    scores, weights = (space.hbm(name, fmt, (queries, keys)) for name, fmt in (("scores", FP32), ("weights", BF16)))

    def scaled(stage, sums, rows, columns):
        program.append(instructions.activation(stage, sums, "identity", scale=1 / sqrt(width)))

    matmul(program, scores, q, k, scaled)
    streamed(program, softmax, [weights], [scores])
    matmul(program, out, weights.permute(1, 0), v)
    contents = [(tensor, encode(rng.normal(size=tensor.shape), BF16)) for tensor in (q, k, v)]
    exact_q, exact_k, exact_v = (decode(codes, BF16) for _, codes in contents)
    powers = np.exp(exact_q.T @ exact_k / sqrt(width))
    expected = powers / powers.sum(1, keepdims=True) @ exact_v
    # Weights are BF16, with up to 37 values each.
    np.testing.assert_allclose(read_values(out, hbm_after(program, contents, rng)), expected, atol=2**-7)


INFINITE = float("inf")


def find_largest(x, k, fmt, rng):
    program = Program(TINY)
    source, values = program.space.hbm("x", fmt, x.shape), program.space.hbm("values", fmt, (len(x), k))
    places = program.space.hbm("places", INT32, (len(x), k))
    streamed(program, topk, [values, places], [source])
    hbm = hbm_after(program, [(source, encode(x, fmt))], rng)
    return read_values(values, hbm), places.elements(hbm).view(np.int32)


@pytest.mark.parametrize("k", (8, 16, 24))
@pytest.mark.parametrize("fmt", (FP32, BF16), ids=("fp32", "bf16"))
def test_no_place_is_named_twice(k, fmt, rng):
    x = np.round(rng.normal(0, 3, (9, 24)))
    for row, count in enumerate((0, 1, 7, 12, 20, 24)):
        x[row, rng.permutation(24)[:count]] = -INFINITE
    x[6], x[7, ::2], x[8, 3:20] = 2.0, INFINITE, INFINITE
    x[7, 1::4] = -INFINITE
    values, places = find_largest(x, k, fmt, rng)
    order = np.argsort(-x, axis=1, kind="stable")[:, :k]
    assert np.array_equal(places, order) and np.array_equal(values, np.take_along_axis(x, order, 1))


def test_of_eight_elements_nothing_is_copied():
    program = Program(TINY)
    x, values = (program.space.sbuf(name, FP32, (n,), kept=True) for name, n in (("x", 20), ("values", 8)))
    topk(program, Rows((values,)), Rows((program.space.sbuf("places", INT32, (8,), kept=True),)), Rows((x,)))
    assert [entry.instruction.name for entry in program.entries] == ["MAX8", "FIND_INDEX8"]
