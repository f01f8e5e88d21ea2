"""Products on the core, in every order that the semaphores permit."""

from itertools import pairwise
from math import prod

import numpy as np
import pytest

from neuroncore_rtl.golden import arith, tensor
from neuroncore_rtl.kernels.library.matmul import matmul
from neuroncore_rtl.kernels.program import Program, build_image, instructions
from neuroncore_rtl.kernels.tiling.column import Column
from neuroncore_rtl.run.arrays import encode
from neuroncore_rtl.spec.config import Config, preset_named
from neuroncore_rtl.spec.formats import BF16, FP8E5M2, FP16, FP32, INT8, INT32, MATMUL_FORMATS
from neuroncore_rtl.spec.isa import DmaCopy, LoadStationary, MultiplyMoving, Storage
from neuroncore_rtl.tb.tests.kernels.products import random_matrix
from tests.kernels.running import run_golden

SEED = 1729
TINY = preset_named("tiny")
ODD = Config(rows=5, columns=6, dma_engines=3, hbm_ports=2)
SPLIT = Config(rows=64, columns=4)


def product(rng, program, m, k, n, fmt, result=None, values=random_matrix, **options):
    a, b, space = values(rng, fmt, m, k), values(rng, fmt, k, n), program.space
    at, bt = space.hbm("a", fmt, (k, m)), space.hbm("b", fmt, (k, n))
    c = space.hbm("c", result or (INT32 if fmt is INT8 else FP32), (m, n))
    matmul(program, c, at, bt, **options)
    outcome = run_golden(build_image(program, [(at, a.T), (bt, b)]), rng)
    return c, c.elements(outcome.hbm), tensor.matrix_product(a, b, fmt, program.config.rows)


@pytest.mark.parametrize(
    "config, m, k, n, fmt",
    [
        *((TINY, 18, 23, 75, fmt) for fmt in MATMUL_FORMATS), *((TINY, 1, 70, 40, fmt) for fmt in MATMUL_FORMATS),
        (TINY, 1, 1, 1, BF16), (TINY, 4, 4, 512, BF16), (TINY, 37, 9, 5, FP32), (TINY, 1, 64, 1030, BF16),
        (ODD, 1, 40, 300, FP8E5M2), (ODD, 61, 11, 33, FP16), (ODD, 13, 6, 1030, BF16),
    ],
    ids=lambda value: str(value) if isinstance(value, int) else None if value in MATMUL_FORMATS else "",
)  # fmt: skip
def test_every_format_and_shape(rng, config, m, k, n, fmt):
    _, found, expected = product(rng, Program(config), m, k, n, fmt)
    assert np.array_equal(found, expected)


def test_results_are_cast_and_finished_on_the_way(rng):
    _, found, expected = product(rng, Program(TINY), 9, 5, 37, BF16, BF16)
    assert np.array_equal(found, arith.round_fp32(expected, BF16, "rne", None))

    def relu(out, sums, rows, columns):
        program.append(instructions.activation(out, sums, "relu"))

    program = Program(TINY)
    _, found, expected = product(rng, program, 9, 5, 40, INT8, FP32, finish=relu)
    assert np.array_equal(found.view(np.float32), np.maximum(expected.view(np.int32), 0))


def program_with_room(size):
    program = Program(TINY)
    program.space.sbuf("taken", INT8, (len(program.space.room(Storage.SBUF)) - 32 * 128 - size,), kept=True)
    return program


@pytest.mark.parametrize("places", (2, 3, 5, 20))
def test_what_does_not_fit_at_once_makes_room(rng, places):
    _, found, expected = product(rng, program_with_room(places * 128 + 64), 9, 50, 40, BF16)
    assert np.array_equal(found, expected)


def test_room_for_a_tile_of_each_operand_is_needed(rng):
    rule = "SBUF must have room for two tiles of K, 256 bytes of a partition, and 4,096 for results, not 4,288"
    with pytest.raises(ValueError, match=rule):
        product(rng, program_with_room(200), 9, 50, 40, BF16)


def copies_of(preset, m, k, n):
    program = Program(preset_named(preset))
    a, b = program.space.hbm("a", BF16, (k, m)), program.space.hbm("b", BF16, (k, n))
    matmul(program, program.space.hbm("c", FP32, (m, n)), a, b)
    return [entry.instruction for entry in program.entries if isinstance(entry.instruction, DmaCopy)]


@pytest.mark.parametrize(
    "preset, shape", [("full", (512, 512, 512)), ("small", (100, 70, 300)), ("large", (1, 99, 600))]
)
def test_operands_that_fit_are_loaded_once_and_nothing_waits_for_a_third_engine(preset, shape):
    m, k, n = shape
    copies = copies_of(preset, m, k, n)
    loads = [copy for copy in copies if copy.src.storage == Storage.HBM]
    assert sum(prod(copy.shape) for copy in loads) == k * (m + n)
    assert all(Storage.HBM in (copy.src.storage, copy.dst.storage) for copy in copies)


@pytest.mark.parametrize(
    "config, shape, tiles",
    [(TINY, (64, 1), 16), (TINY, (70, 1), 16), (TINY, (15, 1), 0), (TINY, (64, 2), 0), (TINY, (1 << 20, 1), 2456),
     (ODD, (60, 1), 0), (SPLIT, (64 * 70, 1), 64)],
)  # fmt: skip
def test_a_vector_has_whole_blocks_of_tiles_for_which_there_is_room(config, shape, tiles):
    program = Program(config)
    assert Column(program, program.space.hbm("a", BF16, shape)).tiles == tiles


def test_a_vector_of_several_blocks_of_lanes(rng):
    """Operands have no special values, because with them a sum this long would always be NaN."""

    def random_values(rng, fmt, *shape):
        return encode(rng.normal(size=shape), fmt)

    _, found, expected = product(rng, Program(SPLIT), 1, 64 * 33 + 6, 5, BF16, values=random_values)
    assert np.array_equal(found, expected)


def test_hbm_brings_a_vector_in_lines_and_a_matrix_in_long_copies():
    shapes = [copy.shape for copy in copies_of("small", 1, 512, 512) if copy.src.storage == Storage.HBM]
    # 32 tiles of K. The last 12 are loaded in two halves of their columns; of the second half of the last 8, the last
    # columns are loaded separately.
    whole = [(16, 512)] * 20 + [(16, 256)] * 8 + [(16, 256), (16, 192)] * 8 + [(16, 64)] * 8
    assert sorted(shapes) == sorted([(16, 16)] * 2 + whole)
    assert shapes[-8:] == [(16, 64)] * 8


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
    # Eight rows of groups; of the last two groups one is halved, the other cut into 128, 64, 32, 16, 16 columns.
    assert loads == 8 * (6 + 2 + 5)


@pytest.mark.parametrize("fmt", [FP32, FP16])
def test_format_that_the_array_lacks_is_refused(rng, fmt):
    narrow = TINY.with_overrides(significand_bits=8)
    product(rng, Program(narrow), 4, 4, 4, BF16)
    with pytest.raises(ValueError, match="same format of bf16, fp8e4m3, fp8e5m2, fp8e3m4, int8, not fp"):
        product(rng, Program(narrow), 4, 4, 4, fmt)
