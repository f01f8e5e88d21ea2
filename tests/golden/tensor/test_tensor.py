"""Tensor engine model against equation and SoftFloat."""

from functools import partial

import numpy as np
import pytest

from neuroncore_rtl.golden.arith import canonical, machine_code, round_fp32, storage_dtype, widen
from neuroncore_rtl.golden.tensor import TensorEngine, accumulate_sums, array_operand, matrix_product
from neuroncore_rtl.golden.tensor.kernel import WIDTH, column_sums, column_sums_equation, multiply_tiles, pack_tiles
from neuroncore_rtl.golden.tensor.product import SHARED
from neuroncore_rtl.golden.tensor.tile import TILE, build_pass
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.formats import BF16, FP8E4M3, FP16, FP32, INT8, MATMUL_FORMATS, TF32
from neuroncore_rtl.spec.isa import LoadStationary, MultiplyMoving, access, tensor
from neuroncore_rtl.tb.check.oracles import softfloat
from neuroncore_rtl.tb.check.oracles.compare import assert_same_bits
from neuroncore_rtl.tb.stimulus.operands import random_codes, special_codes, special_fp32
from tests.oracles.words import words

SEED = 2718
NAN, NEGATIVE_ZERO = 0x7FC00000, 0x80000000
BOTH = (column_sums, column_sums_equation)
MACHINE = Config(rows=4, columns=4)
EVERY_FORMAT = pytest.mark.parametrize("fmt", MATMUL_FORMATS)
EVERY_FLOAT = pytest.mark.parametrize("fmt", [fmt for fmt in MATMUL_FORMATS if fmt.is_float])


def codes(rng, fmt, shape, special=0.002):
    anything = random_codes(rng, fmt, int(np.prod(shape))).reshape(shape)
    if not fmt.is_float:
        return anything
    scale = 2.0 ** np.clip(rng.choice([0, 0, 0, -70, 62]), fmt.min_exponent, fmt.max_exponent - 3)
    values = (rng.standard_normal(shape) * scale * (rng.random(shape) > 0.1)).astype(np.float32)
    tame = round_fp32(values.view(np.uint32), fmt)
    wild = np.where(rng.random(shape) < 0.5, rng.choice(special_codes(fmt), shape), anything)
    return np.where(rng.random(shape) < special, wild, tame).astype(storage_dtype(fmt))


def test_kernel_is_the_equation_on_every_pair_of_special_values():
    values = np.unique(special_codes(BF16)).astype(np.uint16)
    w, _ = array_operand(values[np.newaxis], BF16)
    # Two rows, which together have all pairs of special values; each pair is multiplied by every special value.
    x = np.stack([np.tile(w[0], len(values)), np.repeat(w[0], len(values))])
    ours, theirs = (f(np.repeat(w, 2, 0), x) for f in BOTH)
    assert_same_bits(words(ours), words(theirs))
    for f in BOTH:
        assert set(words(f(w, w))[np.isnan(f(w, w))].tolist()) == {NAN}


def multiply_in_psum(w, x, psum, masks=(None, None), **options):
    around = np.full((psum.shape[0] + 2, psum.shape[1] + 9), 0xABCD1234, np.uint32)
    inside = around[1:-1, 3:-6]
    inside[:] = psum
    operands = [
        (pack_tiles(values, size), None if present is None else pack_tiles(present, size))
        for values, present, size in zip((w, x), masks, (TILE, WIDTH), strict=True)
    ]
    multiply_tiles(*operands, inside, **options)
    result = inside.copy()
    inside[:] = 0xABCD1234
    assert (around == 0xABCD1234).all()
    return result


@EVERY_FORMAT
def test_a_pass_adds_the_column_sums_of_the_equation_to_psum(fmt, rng):
    integer = not fmt.is_float
    compared = changed = nans = 0
    for k, m, n in [(1, 1, 1), (2, 3, 65), (3, 4, 64), (4, 5, 63), (7, 20, 130), (31, 40, 90), (128, 20, 130)] * 4:
        w_half, x_half = rng.integers(2, size=2).tolist() if fmt == FP32 else (0, 0)
        w, w_present = array_operand(codes(rng, fmt, (k, m)), fmt, w_half)
        x, x_present = array_operand(codes(rng, fmt, (k, n)), fmt, x_half)
        old = random_codes(rng, INT8 if integer else FP32, m * n).reshape(m, n).astype(np.uint32)
        for masks in ((w_present, x_present), (rng.random((k, m)) < 0.7, rng.random((k, n)) < 0.7), (None, x != 0)):
            sums = column_sums_equation(w, x, stationary_present=masks[0], moving_present=masks[1])
            for psum in (old, None):
                expected = accumulate_sums(psum, sums, integer)
                options = {"accumulates": psum is not None, "integer": integer}
                assert_same_bits(multiply_in_psum(w, x, old, masks, **options), expected)
            compared += sums.size
            changed += (old != accumulate_sums(old, sums, integer)).sum()
            nans += np.isnan(sums).sum()
    assert compared > 50_000 and changed > 20_000
    assert nans < compared / 3


@pytest.mark.parametrize("masked", [False, True])
def test_kernel_without_a_fused_multiply_add_gives_the_same_bits(masked, rng):
    compared = 0
    for _ in range(10):
        w, _ = array_operand(codes(rng, BF16, (24, 64)), BF16)
        x, _ = array_operand(codes(rng, TF32, (24, 100)), TF32)
        masks = (rng.random(w.shape) < 0.7, rng.random(x.shape) < 0.7) if masked else (None, None)
        psum = random_codes(rng, FP32, 6400).reshape(64, 100)
        ours, theirs = (multiply_in_psum(w, x, psum, masks, accumulates=True, fused=fused) for fused in (False, None))
        assert_same_bits(ours, theirs)
        compared += ours.size
    assert compared == 64_000


@pytest.mark.skipif(not machine_code.has_fused_multiply_add(), reason="this processor has no fused multiply-add")
@pytest.mark.parametrize("masked", [False, True])
def test_kernel_uses_the_processors_vector_fused_multiply_add(masked):
    code = machine_code.assembly(build_pass(WIDTH, masked, integer=False, fused=True))
    assert "fmaf" not in code, "it calls the C library"
    assert any(name in code for name in ("vfmadd132ps", "vfmadd213ps", "vfmadd231ps", "fmla"))


@EVERY_FLOAT
def test_chains_agree_with_softfloat(fmt, rng):
    chains, length = 4096, 40
    w_half, x_half = (1, 0) if fmt == FP32 else (0, 0)
    w, _ = array_operand(codes(rng, fmt, (length, chains // 64), special=0.004), fmt, w_half)
    x, _ = array_operand(codes(rng, fmt, (length, 64), special=0.004), fmt, x_half)
    w_present, x_present = (rng.random(operand.shape) < 0.9 for operand in (w, x))
    theirs = np.full((chains // 64, 64), NEGATIVE_ZERO, np.uint32)
    for row in range(length):
        operands = np.broadcast_arrays(words(x[row]), words(w[row])[:, np.newaxis], theirs)
        stepped = softfloat.mul_add(*(operand.ravel() for operand in operands)).reshape(theirs.shape)
        theirs = np.where(w_present[row][:, np.newaxis] & x_present[row], stepped, theirs)
    ours = column_sums(w, x, stationary_present=w_present, moving_present=x_present)
    assert_same_bits(words(ours), canonical(theirs))
    assert np.isfinite(ours).mean() > 0.3


def test_threads_change_no_bit(rng):
    a, b = codes(rng, BF16, (256, 512)), codes(rng, BF16, (512, 300))
    alone = [matrix_product(a, b[:, first : first + 100], BF16, 128) for first in range(0, 300, 100)]
    assert a.size * b.shape[1] >= SHARED > a.size * 100
    assert np.array_equal(matrix_product(a, b, BF16, 128), np.concatenate(alone, axis=1))


def test_int8_is_exact(rng):
    a, b = rng.integers(-128, 128, (33, 5000)), rng.integers(-128, 128, (5000, 20))
    a[0], b[:, 0] = -128, -128
    product = matrix_product(a.astype(np.int8).view(np.uint8), b.astype(np.int8).view(np.uint8), INT8, 1024)
    assert np.array_equal(product.view(np.int32), a @ b)
    assert (a @ b)[0, 0] > 2**26


def test_int32_wraps_around():
    old = np.array([0x7FFFFFFF, 0x80000000, 5], np.uint32)
    sums = np.array([1, -1, -7], np.float32)
    assert accumulate_sums(old, sums, integer=True).view(np.int32).tolist() == [-(2**31), 2**31 - 1, -2]
    assert accumulate_sums(None, sums, integer=True).view(np.int32).tolist() == [1, -1, -7]


def test_four_passes_of_fp32_are_as_good_as_fp32(rng):
    a, b = rng.standard_normal((30, 400)).astype(np.float32), rng.standard_normal((400, 30)).astype(np.float32)
    ours = matrix_product(words(a), words(b), FP32, 128).view(np.float32).astype(np.float64)
    exact = a.astype(np.float64) @ b
    assert (np.abs(ours - exact) / (np.abs(a).astype(np.float64) @ np.abs(b))).max() < 2**-20


def test_fp32_products_of_one_are_exact(rng):
    values = special_fp32()[np.isfinite(special_fp32().view(np.float32))]
    assert NEGATIVE_ZERO in values
    assert np.array_equal(matrix_product(values[:, np.newaxis], words([[1]]), FP32, 8)[:, 0], values)
    assert np.array_equal(matrix_product(words([[1]]), values[np.newaxis], FP32, 8)[0], values)
    assert matrix_product(words([[1.5]]), words([[np.inf, np.nan]]), FP32, 8).tolist() == [[0x7F800000, NAN]]


ONES, A = np.ones((2, 3), np.float32), np.zeros((2, 3), np.uint16)


@pytest.mark.parametrize(
    ("function", "arguments", "message"),
    [
        (column_sums, (ONES, ONES.T), r"operands must be \[K, M\] and \[K, N\]"),
        (partial(column_sums, moving_present=ONES[:, :2] > 0), (ONES, ONES), "moving_present must have the shape"),
        (matrix_product, (A, A, BF16, 4), r"operands must be \[M, K\] and \[K, N\]"),
        (matrix_product, (A, A.T, BF16, 0), "rows must be at least 1, not 0"),
    ],
)
def test_what_does_not_fit_is_refused(function, arguments, message):
    with pytest.raises(ValueError, match=message):
        function(*arguments)


def place(memory, matrix, address, stride):
    for column in range(matrix.shape[1]):
        element = np.ascontiguousarray(matrix[:, column : column + 1])
        first = address + column * stride
        memory[: len(matrix), first : first + matrix.itemsize] = element.view(np.uint8)


def any_start(rng, starts, count, limit, quadrant):
    allowed = [start for start in starts if start + count <= limit and not access.allowed_start(start, count, quadrant)]
    return int(rng.choice(allowed))


def run_tiled(rng, engine, a, b, fmt):
    config, size = engine.config, fmt.bits // 8
    (m, k), n = a.shape, b.shape[1]
    result = np.zeros((m, n), np.uint32)
    passes = [(0, 0), (0, 1), (1, 0), (1, 1)] if fmt == FP32 else [(0, 0)]
    for m0 in range(0, m, config.columns):
        a_tile = a[m0 : m0 + config.columns]
        n0 = 0
        while n0 < n:
            count = int(rng.integers(1, min(n - n0, config.psum_words) + 1))
            psum = int(rng.integers(8)) * config.psum_words + int(rng.integers(config.psum_words - count + 1))
            column = any_start(rng, tensor.column_starts(config), len(a_tile), config.columns, config.quadrant)
            for k0 in range(0, k, config.rows):
                w, x = a_tile[:, k0 : k0 + config.rows].T, b[k0 : k0 + config.rows, n0 : n0 + count]
                row = any_start(rng, tensor.row_starts(config), len(w), config.rows, config.quadrant)
                # Memories are full of noise, also in rows beyond k.
                stationary, moving = rng.integers(0, 256, (2, config.rows, 1 << 14), np.uint8)
                stride = size * int(rng.integers(1, 4))
                address = 4 * size * int(rng.integers(8)), size * int(rng.integers(8))
                place(stationary[row:], w, address[0] + size * column, size)
                place(moving[row:], x, address[1], stride)
                # Each instruction's rows are masked by the other instruction, and a load's columns by the product.
                rows = {"row": row, "k": len(w)}, {"row": 0, "k": config.rows}
                load_rows, rows = rows if rng.random() < 0.5 else rows[::-1]
                columns = {"column": column, "m": w.shape[1]}
                wide = rng.random() < 0.5
                loaded = {"column": 0, "m": config.columns} if wide else columns
                for index, (w_half, x_half) in enumerate(passes):
                    first = address[0] + (0 if wide else size * column)
                    load = LoadStationary(format=fmt, half=w_half, address=first, **load_rows, **loaded)
                    multiply = MultiplyMoving(
                        format=fmt, half=x_half, address=address[1], n=count, stride=stride, psum=psum,
                        accumulate=k0 > 0 or index > 0, **rows, **columns,
                    )  # fmt: skip
                    engine.execute(load, stationary, None)
                    engine.execute(multiply, None, moving)
            found = engine.psum[column : column + len(a_tile), psum : psum + count]
            result[m0 : m0 + len(a_tile), n0 : n0 + count] = found
            n0 += count
    return result


@EVERY_FORMAT
def test_instructions_on_random_tiles_give_the_product(fmt, rng):
    compared = 0
    for config in (MACHINE, Config(rows=5, columns=8), Config(rows=16, columns=6), Config(rows=9, columns=16)):
        for _ in range(4):
            m, k, n = rng.integers(1, 40, 3)
            a, b = codes(rng, fmt, (m, k), special=0.01), codes(rng, fmt, (k, n), special=0.01)
            assert_same_bits(run_tiled(rng, TensorEngine(config), a, b, fmt), matrix_product(a, b, fmt, config.rows))
            compared += m * n
    assert compared > 1000


def transpose(elements, fmt, flag=True):
    rows, columns = elements.shape
    size = fmt.bits // 8
    identity = np.zeros((rows, rows), elements.dtype)
    np.fill_diagonal(identity, 1 if fmt == INT8 else round_fp32(words(1), fmt))
    stationary, moving = np.ascontiguousarray(elements).view(np.uint8), identity.view(np.uint8)
    engine = TensorEngine(Config(rows=rows, columns=columns))
    for half in (0, 1) if fmt == FP32 else (0,):
        engine.execute(LoadStationary(format=fmt, half=half, k=rows, m=columns, address=0), stationary, None)
        tile = {"k": rows, "m": columns, "n": rows, "address": 0, "stride": size, "psum": 0, "transpose": flag}
        engine.execute(MultiplyMoving(format=fmt, accumulate=half > 0, **tile), None, moving)
    return engine.psum[:, :rows]


@EVERY_FORMAT
def test_transpose_passes_every_element_bit_for_bit(fmt, rng):
    elements = np.resize(special_codes(fmt), (64, 48))
    elements[32:] = random_codes(rng, fmt, 32 * 48).reshape(32, 48)
    if fmt.bits == 8:
        elements[:16, :16] = np.arange(256).reshape(16, 16)
    if fmt == INT8:
        assert np.array_equal(transpose(elements, fmt).view(np.int32), elements.T.view(np.int8))
        return
    expected = widen(elements, fmt)
    assert_same_bits(transpose(elements, fmt), expected.T)
    values = expected.view(np.float32)
    for kind in (np.isnan(values), np.isinf(values), expected == NEGATIVE_ZERO, np.abs(values) < fmt.max / 2):
        assert kind.any()


def test_identity_without_the_flag_spreads_nan_and_loses_the_sign_of_zero():
    elements = round_fp32(words([[np.inf, 1, -0.0], [2, 3, 4], [5, 6, 7]]), BF16)
    expected = words([[np.inf, np.nan, np.nan], [1, 3, 6], [0, 4, 7]])
    assert_same_bits(transpose(elements, BF16, flag=False), canonical(expected))
    assert transpose(elements, BF16)[2, 0] == NEGATIVE_ZERO


def simple(kind, **changes):
    fields = {"format": BF16, "k": 4, "m": 4, "address": 0}
    if kind is MultiplyMoving:
        fields |= {"n": 1, "stride": 2, "psum": 0}
    return kind(**fields | changes)


def memory_of(values, fmt=BF16):
    return round_fp32(words(values), fmt).view(np.uint8)


def test_a_second_load_replaces_the_first_and_weights_stay_until_the_next():
    engine = TensorEngine(MACHINE)
    one, two, x = memory_of(np.eye(4)), memory_of(2 * np.eye(4)), memory_of([[1], [2], [3], [4]])
    engine.execute(simple(LoadStationary), one, None)
    engine.execute(simple(LoadStationary), two, None)
    engine.execute(simple(MultiplyMoving), None, x)
    engine.execute(simple(MultiplyMoving, accumulate=True), None, x)
    assert engine.psum[:, 0].view(np.float32).tolist() == [4, 8, 12, 16]


def test_rows_that_meet_no_weights_sum_to_minus_zero():
    engine = TensorEngine(Config(rows=8, columns=8))
    engine.psum[:] = 7
    memory = memory_of(np.ones((8, 4)))
    engine.execute(simple(LoadStationary, row=4), memory, None)
    engine.execute(simple(MultiplyMoving), None, memory)
    engine.execute(simple(MultiplyMoving, psum=1, transpose=True), None, memory)
    assert engine.psum[:4, :2].tolist() == [[NEGATIVE_ZERO] * 2] * 4


def test_formats_of_the_two_operands_may_differ():
    engine = TensorEngine(MACHINE)
    engine.execute(simple(LoadStationary, format=FP8E4M3), memory_of([[1.5, 0, 0, 0]] * 4, FP8E4M3), None)
    engine.execute(simple(MultiplyMoving), None, memory_of([[1], [2], [3], [0.25]]))
    assert engine.psum[0, 0].view(np.float32) == 9.375


def test_partitions_and_words_that_are_not_addressed_stay():
    engine = TensorEngine(MACHINE)
    engine.psum[:] = 7
    engine.execute(simple(LoadStationary), memory_of(np.eye(4)), None)
    engine.execute(simple(MultiplyMoving, m=2, n=3, stride=0, psum=510 - 1), None, memory_of(np.ones((4, 1))))
    written = engine.psum != 7
    assert written[:2, 509:512].all()
    assert written.sum() == 6


@pytest.mark.parametrize(
    ("loaded", "instruction", "message"),
    [
        (0, simple(MultiplyMoving), "a MultiplyMoving must follow a LoadStationary"),
        (0, simple(LoadStationary, k=5), "k must be between 1 and 4, not 5"),
        (0, simple(LoadStationary, k=1, row=4), "row must be one of 0, 1, 2, 3, not 4"),
        (0, simple(LoadStationary, k=2, row=3), "row must be 0 or 2 for more than 1 rows, not 3"),
        (0, simple(LoadStationary, address=16), "memory must have 4 rows of 24 bytes or more"),
        (3, simple(MultiplyMoving), "columns must be among the loaded ones, 0 to 2, not 0 to 3"),
        (3, simple(MultiplyMoving, format=INT8, m=3), "loaded format must be int8 if the moving format is int8"),
        (0, simple(LoadStationary, format=FP16, half=1), "must be 0, or for fp32 1"),
    ],
)
def test_instruction_that_cannot_be_executed_is_refused(loaded, instruction, message):
    engine, memory = TensorEngine(MACHINE), np.zeros((4, 16), np.uint8)
    if loaded:
        engine.execute(simple(LoadStationary, m=loaded), memory, None)
    with pytest.raises(ValueError, match=message):
        engine.execute(instruction, memory, memory)
