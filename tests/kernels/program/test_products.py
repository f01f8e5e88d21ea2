"""Products of tiles by tensors."""

import numpy as np
import pytest

from neuroncore_rtl.golden.tensor import matrix_product
from neuroncore_rtl.kernels.program import Program, build_image, dma_copy, load_stationary, multiply_moving
from neuroncore_rtl.kernels.program.instructions import memset, tensor_copy
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.formats import BF16, FP32, INT8, INT16, INT32, MATMUL_FORMATS
from neuroncore_rtl.spec.isa import LoadStationary, MultiplyMoving
from tests.kernels.running import run_golden

CONFIG = Config(rows=8, columns=6, dma_engines=2)


def on_chip(program, k, m, n, **options):
    space = program.space
    space.sbuf("odd", INT8, (1,), kept=True)
    space.psum("before", FP32, (3,), kept=True)
    result = space.psum("result", FP32, (n,), m, **options)
    return space.sbuf("a", BF16, (m,), k, **options), space.sbuf("b", BF16, (n,), k, **options), result


def test_fields_are_those_of_the_tensors():
    a, b, result = on_chip(Program(CONFIG), 8, 5, 6, kept=True)
    assert load_stationary(a[:7, :4]) == LoadStationary(format=BF16, k=7, m=4, address=a.address)
    expected = MultiplyMoving(
        format=BF16, k=7, m=4, n=2, address=b.address + 2, stride=6, psum=5, accumulate=True, transpose=True
    )
    assert multiply_moving(result[:4, 1:3], b[:7, 1::3], accumulate=True, transpose=True) == expected
    assert multiply_moving(*(result.reshape(2, 3), b.reshape(2, 3))) == multiply_moving(result, b)
    assert multiply_moving(result, b[:, :1].broadcast_to(6)).stride == 0


def test_operands_and_results_lie_in_any_quarter_of_the_array(rng):
    config = Config(rows=16, columns=16)
    program = Program(config)
    space = program.space
    left, right = space.hbm("left", BF16, (16, 4)), space.hbm("right", BF16, (16, 5))
    out, staged = space.hbm("out", FP32, (16, 5)), space.sbuf("staged", FP32, (5,))
    a, b, sums = space.sbuf("a", BF16, (4,)), space.sbuf("b", BF16, (5,)), space.psum("sums", FP32, (5,))
    codes = [rng.integers(1 << 14, size=of.shape) for of in (left, right)]
    expected = np.zeros((16, 5), np.uint32)
    program.append(dma_copy(a, left))
    program.append(dma_copy(b, right))
    quarters = [slice(first, first + 4) for first in (0, 4, 8, 12)]
    for rows, columns in zip([quarters[n] for n in (2, 0, 3, 1)], quarters, strict=True):
        program.append(load_stationary(a[rows], column=columns.start))
        program.append(multiply_moving(sums[columns], b[rows]))
        expected[columns] = matrix_product(codes[0][rows].T, codes[1][rows], BF16, config.rows)
    program.append(tensor_copy(staged, sums))
    program.append(dma_copy(out, staged))
    hbm = run_golden(build_image(program, list(zip((left, right), codes, strict=True)))).hbm
    assert np.array_equal(out.elements(hbm), expected)


def test_any_tensor_may_be_stationary():
    program = Program(CONFIG)
    for number, fmt in enumerate(MATMUL_FORMATS):
        for kept in (False, True):
            program.space.sbuf("odd", INT8, (1 + number % 3,), kept=True)
            a = program.space.sbuf("a", fmt, (5,), 8, kept=kept)
            program.append(memset(a, 1))
            program.append(load_stationary(a))
    assert len(program.records()) == 4 * len(MATMUL_FORMATS)


def test_refusals_name_the_tensor_and_the_rule():
    program = Program(CONFIG)
    a, b, result = on_chip(program, 8, 5, 6)
    sbuf, psum = program.space.sbuf, program.space.psum
    whole, counts, small = sbuf("whole", FP32, (6,)), sbuf("counts", INT16, (4,)), sbuf("small", INT8, (6,))
    late, words = psum("late", FP32, (1024,)), psum("words", INT32, (6,))
    for wrong, message in (
        (lambda: load_stationary(result), "result: an operand must be in SBUF, not PSUM"),
        (lambda: load_stationary(counts), "counts: format must be one of bf16, .*, fp32, not int16"),
        (lambda: load_stationary(a, half=1), "a: half must be 0, or for fp32 1, not 1 for bf16"),
        (lambda: load_stationary(whole, half=2), "whole: half must be 0, or for fp32 1, not 2 for fp32"),
        (lambda: load_stationary(a[:, ::2]), r"a: a stationary operand must have one dimension of adj.* \[3\]"),
        (lambda: load_stationary(whole.reshape(2, 3)), "whole: a stationary operand must have one dimension"),
        (lambda: load_stationary(a[:, 1:]), r"a: a stationary operand's address must be a multiple of 8, not \d+"),
        (lambda: multiply_moving(whole, b), "whole: a product must be in PSUM, not SBUF"),
        (lambda: multiply_moving(words, b), "words: sums of bf16 must be fp32, not int32"),
        (lambda: multiply_moving(result, small), "result: sums of int8 must be int32, not fp32"),
        (lambda: multiply_moving(result, b[:, :4]), r"result: shape must be the \(4,\) of b, not \(6,\)"),
        (lambda: multiply_moving(result[:, ::2], b[:, :3]), r"result: a product's words must be adjacent, .* \[2\]"),
        (lambda: multiply_moving(result, b[:, ::-1]), r"b: elements must have ascending addresses, not steps \[-1\]"),
    ):
        with pytest.raises(ValueError, match=rf"^{message}.* \(test_products.py:\d+\)$"):
            wrong()
    program.append(load_stationary(a[:, :4]))
    for instruction, message in (
        (load_stationary(a[3:5]), "row must be one of 0, 2, 4, 6, not 3"),
        (multiply_moving(result[4:], b), "columns must be among the loaded ones, 0 to 3, not 4 to 4"),
        (multiply_moving(late[:4, 508:514], b), r"psum \+ n must stay within a bank of 512"),
        (load_stationary(sbuf("broad", BF16, (7,))), "m must be between 1 and 6, not 7"),
    ):
        with pytest.raises(ValueError, match=rf"{message} .*\(test_products.py:\d+\)$"):
            program.append(instruction)
