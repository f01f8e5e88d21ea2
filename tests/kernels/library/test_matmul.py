"""Products on the core: every shape and format, bit for bit, in whatever order the semaphores allow."""

from itertools import pairwise

import numpy as np
import pytest

from neuroncore_rtl.golden.arith import round_fp32
from neuroncore_rtl.golden.tensor import matrix_product
from neuroncore_rtl.kernels.library.matmul import matmul
from neuroncore_rtl.kernels.program import Program, build_image
from neuroncore_rtl.kernels.program.instructions import activation
from neuroncore_rtl.spec.config import Config, preset_named
from neuroncore_rtl.spec.formats import BF16, FP8E5M2, FP16, FP32, INT8, INT32, MATMUL_FORMATS
from neuroncore_rtl.spec.isa import DmaCopy, LoadStationary, MultiplyMoving, Storage
from neuroncore_rtl.tb.benches.matmul import random_matrix
from tests.kernels.running import finished

SEED = 1729
TINY = preset_named("tiny")
ODD = Config(rows=5, columns=6, dma_engines=3, hbm_ports=2)


def product(rng, program, m, k, n, fmt, result=None, **options):
    """Append a random product to a program; return where its result goes, what golden leaves there and what it is."""
    a, b = random_matrix(rng, fmt, m, k), random_matrix(rng, fmt, k, n)
    space = program.space
    at, bt = space.hbm("a", fmt, (k, m)), space.hbm("b", fmt, (k, n))
    c = space.hbm("c", result or (INT32 if fmt is INT8 else FP32), (m, n))
    matmul(program, c, at, bt, **options)
    outcome = finished(build_image(program, [(at, a.T), (bt, b)]), rng)
    return c, c.elements(outcome.hbm), matrix_product(a, b, fmt, program.config.rows)


@pytest.mark.parametrize(
    "config, m, k, n, fmt",
    [
        *((TINY, 18, 23, 75, fmt) for fmt in MATMUL_FORMATS),
        (TINY, 1, 1, 1, BF16),
        (TINY, 4, 4, 512, BF16),
        (TINY, 37, 9, 5, FP32),
        (ODD, 1, 40, 300, FP8E5M2),
        (ODD, 61, 11, 33, FP16),
        (ODD, 13, 6, 1030, BF16),
    ],
    ids=lambda value: str(value) if isinstance(value, int) else None if value in MATMUL_FORMATS else "",
)
def test_every_format_and_shape(rng, config, m, k, n, fmt):
    _, found, expected = product(rng, Program(config), m, k, n, fmt)
    assert np.array_equal(found, expected)


def test_results_are_cast_and_finished_on_the_way(rng):
    _, found, expected = product(rng, Program(TINY), 9, 5, 37, BF16, BF16)
    assert np.array_equal(found, round_fp32(expected, BF16, "rne", None))

    def relu(out, sums, rows, columns):
        program.append(activation(out, sums, "relu"))

    program = Program(TINY)
    _, found, expected = product(rng, program, 9, 5, 40, INT8, FP32, finish=relu)
    assert np.array_equal(found.view(np.float32), np.maximum(expected.view(np.int32), 0))


def test_what_does_not_fit_at_once_comes_in_chunks(rng):
    program = Program(TINY)
    # Room for the eight results on their way, and for two buffers of three tiles of K.
    program.space.sbuf("taken", INT8, (len(program.space.room(0)) - 8 * 224 - 2 * 3 * 128 - 64,), kept=True)
    _, found, expected = product(rng, program, 9, 50, 40, BF16)
    assert np.array_equal(found, expected)
    program.space.sbuf("more", INT8, (len(program.space.room(0)) - 8 * 224 - 100,), kept=True)
    with pytest.raises(ValueError, match="SBUF must have room for two buffers of a tile of K"):
        product(rng, program, 9, 50, 40, BF16)


@pytest.mark.parametrize("m, n, ends", [(61, 33, (5, 40, 61)), (13, 1030, (6, 13)), (90, 37, (90,))])
def test_strips_are_stored_one_after_the_other(rng, m, n, ends):
    program, told = Program(ODD), []
    strips = [slice(*pair) for pair in pairwise((0, *ends))]
    stored = {"strips": strips, "stored": lambda rows: told.append((rows, len(program.entries)))}
    c, found, expected = product(rng, program, m, 11, n, BF16, **stored)
    assert np.array_equal(found, expected)
    assert [rows for rows, _ in told] == strips
    first, size = 0, 4 * n
    for rows, end in told:
        stores = [e.instruction.dst for e in program.entries[first:end] if isinstance(e.instruction, DmaCopy)]
        places = {dst.address - c.address for dst in stores if dst.storage == Storage.HBM}
        assert min(places) == rows.start * size and max(places) < rows.stop * size
        first = end
    assert first == len(program.entries)


def test_the_tensor_engine_does_nothing_twice(rng):
    program = Program(preset_named("small"))
    product(rng, program, 128, 128, 256, BF16)
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
