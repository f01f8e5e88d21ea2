"""Products on the core: every shape and format, bit for bit, in whatever order the semaphores allow."""

import numpy as np
import pytest

from neuroncore_rtl.golden.arith import round_fp32
from neuroncore_rtl.golden.core import Core
from neuroncore_rtl.golden.tensor import matrix_product
from neuroncore_rtl.kernels.library.matmul import matmul
from neuroncore_rtl.kernels.program.image import build_image
from neuroncore_rtl.kernels.program.instructions import activation
from neuroncore_rtl.kernels.program.program import Program
from neuroncore_rtl.spec.config import Config, preset_named
from neuroncore_rtl.spec.formats import BF16, FP8E5M2, FP16, FP32, INT8, INT32, MATMUL_FORMATS
from neuroncore_rtl.spec.isa import DmaCopy, LoadStationary, MultiplyMoving, Storage
from neuroncore_rtl.tb.benches.matmul import random_matrix

SEED = 1729
TINY = preset_named("tiny")
ODD = Config(rows=5, columns=6, dma_engines=3, hbm_ports=2)


def build(rng, config, m, k, n, fmt, result=None, finish=None):
    """Return the program of a random product, its image, where its result goes and what that is."""
    a, b = random_matrix(rng, fmt, m, k), random_matrix(rng, fmt, k, n)
    program = Program(config)
    space = program.space
    at, bt = space.hbm("a", fmt, (k, m)), space.hbm("b", fmt, (k, n))
    c = space.hbm("c", result or (INT32 if fmt is INT8 else FP32), (m, n))
    matmul(program, c, at, bt, finish and finish(program))
    image = build_image(program, [(at, a.T), (bt, b)])
    return program, image, c, matrix_product(a, b, fmt, config.rows)


def run(rng, config, image, c):
    outcome = Core(config, image.memory(), rng).run(image.base)
    assert (outcome.exit_code, outcome.error) == (0, None)
    return c.elements(outcome.hbm)


@pytest.mark.parametrize("fmt", MATMUL_FORMATS)
def test_every_format(rng, fmt):
    _, image, c, expected = build(rng, TINY, 18, 23, 75, fmt)
    assert np.array_equal(run(rng, TINY, image, c), expected)


@pytest.mark.parametrize(
    "config, m, k, n, fmt",
    [
        (TINY, 1, 1, 1, BF16),
        (TINY, 4, 4, 512, BF16),
        (TINY, 37, 9, 5, FP32),
        (ODD, 1, 40, 300, FP8E5M2),
        (ODD, 61, 11, 33, FP16),
        (ODD, 13, 6, 1030, BF16),
    ],
    ids=lambda value: str(value) if isinstance(value, int) else "",
)
def test_every_shape(rng, config, m, k, n, fmt):
    _, image, c, expected = build(rng, config, m, k, n, fmt)
    assert np.array_equal(run(rng, config, image, c), expected)


def test_results_are_cast_and_finished_on_the_way(rng):
    _, image, c, expected = build(rng, TINY, 9, 5, 37, BF16, BF16)
    assert np.array_equal(run(rng, TINY, image, c), round_fp32(expected, BF16, "rne", None))

    def relu(program):
        return lambda out, sums, rows, columns: program.append(activation(out, sums, "relu"))

    _, image, c, expected = build(rng, TINY, 9, 5, 40, INT8, FP32, relu)
    assert np.array_equal(run(rng, TINY, image, c).view(np.float32), np.maximum(expected.view(np.int32), 0))


def test_what_does_not_fit_at_once_comes_in_chunks(rng):
    program = Program(TINY)
    at, bt = program.space.hbm("a", BF16, (50, 9)), program.space.hbm("b", BF16, (50, 40))
    c = program.space.hbm("c", FP32, (9, 40))
    # Room for the eight results on their way, and for two buffers of three tiles of K.
    program.space.sbuf("taken", INT8, (program.space.free(0) - 8 * 160 - 2 * 3 * 128 - 64,))
    matmul(program, c, at, bt)
    a, b = random_matrix(rng, BF16, 9, 50), random_matrix(rng, BF16, 50, 40)
    image = build_image(program, [(at, a.T), (bt, b)])
    assert np.array_equal(run(rng, TINY, image, c), matrix_product(a, b, BF16, 4))
    with pytest.raises(ValueError, match="SBUF must have room for two buffers of a tile of K"):
        program.space.sbuf("more", INT8, (program.space.free(0) - 8 * 160 - 100,))
        matmul(program, c, at, bt)


@pytest.mark.parametrize("m, n, ends", [(61, 33, (5, 40, 61)), (13, 1030, (6, 13)), (90, 37, (90,))])
def test_strips_are_stored_one_after_the_other(rng, m, n, ends):
    a, b = random_matrix(rng, BF16, m, 11), random_matrix(rng, BF16, 11, n)
    program = Program(ODD)
    space = program.space
    at, bt, c = space.hbm("a", BF16, (11, m)), space.hbm("b", BF16, (11, n)), space.hbm("c", FP32, (m, n))
    strips = [slice(first, end) for first, end in zip((0, *ends), ends, strict=False)]
    told = []
    matmul(program, c, at, bt, strips=strips, stored=lambda rows: told.append((rows, len(program.entries))))
    assert [rows for rows, _ in told] == strips
    first, size = 0, 4 * n
    for rows, end in told:
        stores = [e.instruction.dst for e in program.entries[first:end] if isinstance(e.instruction, DmaCopy)]
        stores = [dst for dst in stores if dst.storage == Storage.HBM]
        places = {dst.address - c.address for dst in stores}
        assert min(places) == rows.start * size and max(places) < rows.stop * size
        first = end
    assert first == len(program.entries)
    image = build_image(program, [(at, a.T), (bt, b)])
    assert np.array_equal(run(rng, ODD, image, c), matrix_product(a, b, BF16, ODD.rows))


def test_the_tensor_engine_does_nothing_twice(rng):
    config = preset_named("small")
    program, *_ = build(rng, config, 128, 128, 256, BF16)
    columns = sum(entry.instruction.n for entry in program.entries if isinstance(entry.instruction, MultiplyMoving))
    loads = sum(isinstance(entry.instruction, LoadStationary) for entry in program.entries)
    assert columns == 8 * 8 * 256
    # Eight rows of groups, of which the last is cut into four pieces: 128, 64, 32, 32.
    assert loads == 8 * (7 + 4)


@pytest.mark.parametrize(
    "c, a, b, message",
    [
        ((4, 4), (5, 4), (6, 4), r"c, a, b must be \[M, N\], \[K, M\], \[K, N\], not \(4, 4\), \(5, 4\), \(6, 4\)"),
        ((4, 5), (5, 4), (5, 4), r"c, a, b must be"),
    ],
)
def test_refusals(c, a, b, message):
    program = Program(TINY)
    tensors = [program.space.hbm(name, BF16, shape) for name, shape in (("c", c), ("a", a), ("b", b))]
    with pytest.raises(ValueError, match=message):
        matmul(program, *tensors)
    mixed = program.space.hbm("mixed", FP16, (4, 4))
    square = program.space.hbm("square", INT32, (4, 4))
    for pair in ((square, square), (mixed, program.space.hbm("other", BF16, (4, 4)))):
        with pytest.raises(ValueError, match="a and b must have the same format of bf16, "):
            matmul(program, square, *pair)
