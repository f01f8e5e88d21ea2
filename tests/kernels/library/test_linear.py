"""Linear layers of any size on golden, bit for bit."""

import numpy as np
import pytest

from neuroncore_rtl.golden import tensor as golden
from neuroncore_rtl.golden.arith import decode
from neuroncore_rtl.kernels.library.linear import linear, linear_t
from neuroncore_rtl.kernels.library.product import product, strips_of
from neuroncore_rtl.kernels.library.transpose import identity, transpose
from neuroncore_rtl.kernels.program import Program
from neuroncore_rtl.kernels.tiling.rows import Rows
from neuroncore_rtl.kernels.tiling.transfer import load, load_row, store
from neuroncore_rtl.run.arrays import encode
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.formats import BF16, FP8E4M3, FP32, INT8, INT32
from neuroncore_rtl.spec.isa import Storage
from tests.kernels.running import TINY, every_config, hbm_after


def operand(rng, program, name, fmt, shape):
    return program.space.hbm(name, fmt, shape), encode(rng.normal(size=shape) * (20 if fmt is INT8 else 1), fmt)


@every_config
@pytest.mark.parametrize("on_chip", ("", "a", "b", "ab"))
@pytest.mark.parametrize("fmt", (BF16, FP32, FP8E4M3, INT8), ids=lambda fmt: fmt.name)
def test_a_product_is_the_equation_wherever_operands_are(rng, config, on_chip, fmt):
    k, m, n = (int(size) for size in rng.integers(1, 24, 3))
    program, sums = Program(config), INT32 if fmt is INT8 else FP32
    (a, left), (b, right) = (operand(rng, program, "a", fmt, (k, m)), operand(rng, program, "b", fmt, (k, n)))
    c = program.space.hbm("c", sums, (m, n))
    parts = [slice(first, min(first + config.rows, k)) for first in range(0, k, config.rows)]
    operands = [load(program, one, parts) if one.name in on_chip else one for one in (a, b)]
    store(program, c, product(program, *operands, fmt=sums))
    hbm = hbm_after(program, [(a, left), (b, right)], rng)
    assert np.array_equal(c.elements(hbm), golden.matrix_product(left.T, right, fmt, config.rows))


def test_more_columns_than_a_bank_and_parts_of_a_pass(rng):
    """Heads of four features share a pass of 16 columns, because they start at quadrants; heads of six do not."""
    results = []
    for width, config in ((4, Config(rows=16, columns=16)), (6, Config(rows=16, columns=16)), (1, TINY)):
        program = Program(config)
        a, left = operand(rng, program, "a", BF16, (20, 24))
        b, right = operand(rng, program, "b", BF16, (20, 530))
        c = program.space.hbm("c", FP32, (24, 530))
        found = product(program, a, b, fmt=FP32, parts=[slice(first, first + width) for first in range(0, 24, width)])
        assert [tile.partitions for tile in found.tiles] == [width] * (24 // width)
        store(program, c, found)
        hbm = hbm_after(program, [(a, left), (b, right)], rng)
        assert np.array_equal(c.elements(hbm), golden.matrix_product(left.T, right, BF16, config.rows))
        results.append(sum(entry.instruction.name == "LOAD_STATIONARY" for entry in program.entries))
    assert results[0] < results[1]


def test_strips_of_hbm_get_ever_fewer(rng):
    """A strip is a range of columns of the result; ten tokens are three groups in each strip.

    The groups of a strip are added up together, except for the last strip, in which they are added up one by one.
    """
    program = Program(TINY)
    (a, left), (b, right) = (operand(rng, program, "a", BF16, (9, 10)), operand(rng, program, "b", BF16, (9, 700)))
    assert [part.stop for part in strips_of(b, 10, TINY.columns, TINY.psum_words)] == [352, 544, 640, 672, 700]
    assert [part.stop for part in strips_of(b, 3, TINY.columns, TINY.psum_words)] == [512, 700]
    c = program.space.hbm("c", FP32, (10, 700))
    store(program, c, product(program, load(program, a), b, fmt=FP32))
    moved = [step.instruction for step in program.entries if step.instruction.name == "MULTIPLY_MOVING"]
    assert [one.accumulate for one in moved[:9]] == [False] * 3 + [True] * 6
    assert [one.accumulate for one in moved[-9:]] == [False, True, True] * 3
    hbm = hbm_after(program, [(a, left), (b, right)], rng)
    assert np.array_equal(c.elements(hbm), golden.matrix_product(left.T, right, BF16, 4))


@pytest.mark.parametrize("each", (False, True))
@pytest.mark.parametrize("fmt", (BF16, FP32), ids=lambda fmt: fmt.name)
def test_a_row_of_parameters_is_in_every_partition(rng, each, fmt):
    program = Program(TINY)
    row, codes = operand(rng, program, "row", fmt, (600,))
    out = program.space.hbm("out", fmt, (4, 600))
    store(program, out, Rows((load_row(program, row, each=each),)))
    assert np.array_equal(out.elements(hbm_after(program, [(row, codes)], rng)), np.broadcast_to(codes, (4, 600)))
    assert any(step.instruction.name == "MULTIPLY_MOVING" for step in program.entries) is (fmt is BF16 and not each)


@every_config
@pytest.mark.parametrize("shape", [(1, 1), (7, 10), (33, 18)], ids=lambda shape: "x".join(map(str, shape)))
def test_a_transposition_moves_bits(rng, config, shape):
    program = Program(config)
    x, y = program.space.hbm("x", BF16, shape), program.space.hbm("y", BF16, shape[::-1])
    codes = rng.integers(0, 1 << 16, shape).astype(np.uint16)
    nan = (codes & 0x7F80 == 0x7F80) & (codes & 0x7F != 0)  # FP32 conversion drops its payload
    codes[nan] = np.resize([0x8000, 0x7F80, 0xFF80, 1], nan.sum())
    store(program, y, transpose(program, load(program, x), identity(program, BF16)))
    assert np.array_equal(y.elements(hbm_after(program, [(x, codes)], rng)), codes.T)


@every_config
def test_two_layers_do_not_touch_hbm_between(rng, config):
    tokens, width, hidden = 9, 11, 21
    program = Program(config)
    x, xs = operand(rng, program, "x", BF16, (tokens, width))
    w, ws = operand(rng, program, "w", BF16, (width, hidden))
    v, vs = operand(rng, program, "v", BF16, (hidden, width))
    bias, shifts = operand(rng, program, "bias", FP32, (hidden,))
    row, lifts = operand(rng, program, "row", FP32, (width,))
    y = program.space.hbm("y", FP32, (tokens, width))
    rows = load(program, x)
    hidden_t = linear_t(program, w, transpose(program, rows, identity(program, BF16)), bias, "relu")
    store(program, y, linear(program, hidden_t, load(program, v), row, rows, fmt=FP32))
    spaces = [range(t.address, t.address + t.size * t.format.bits // 8) for t in (x, w, v, bias, row, y)]
    for instruction in (entry.instruction for entry in program.entries):
        for regions, places in ((instruction.reads, spaces[:5]), (instruction.writes, spaces[5:])):
            touched = [region.address for region in regions if region.storage == Storage.HBM]
            assert all(any(address in place for place in places) for address in touched), instruction
    hbm = hbm_after(program, [(x, xs), (w, ws), (v, vs), (bias, shifts), (row, lifts)], rng)
    a, b, c = (decode(codes, BF16) for codes in (xs, ws, vs))
    middle = decode(encode(np.maximum(a @ b + shifts.view(np.float32), 0), BF16), BF16)
    np.testing.assert_allclose(y.elements(hbm).view(np.float32), middle @ c + lifts.view(np.float32) + a, atol=2**-6)
