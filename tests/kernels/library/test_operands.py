"""Operands that the library's kernels accept, and the messages for others."""

from functools import partial

import numpy as np
import pytest

from neuroncore_rtl import Program, Rows, dma_copy, load, replicate, run, store, streamed
from neuroncore_rtl.kernels.library.attention import Head, attention
from neuroncore_rtl.kernels.library.conv2d import ConvWindow, conv2d
from neuroncore_rtl.kernels.library.layernorm import layernorm
from neuroncore_rtl.kernels.library.linear import linear, linear_t
from neuroncore_rtl.kernels.library.matmul import matmul
from neuroncore_rtl.kernels.library.product import product
from neuroncore_rtl.kernels.library.rmsnorm import rmsnorm
from neuroncore_rtl.kernels.library.rope import rope
from neuroncore_rtl.kernels.library.softmax import softmax
from neuroncore_rtl.kernels.library.sums import sum_columns
from neuroncore_rtl.kernels.library.swiglu import swiglu_t
from neuroncore_rtl.kernels.library.transpose import transpose
from neuroncore_rtl.kernels.models.transformer.decoder import owners
from neuroncore_rtl.kernels.tiling.rows import place_rows, scratch, tiles_of
from neuroncore_rtl.kernels.tiling.transfer import load_row, rows_like
from neuroncore_rtl.kernels.training.attention_backward import attention_backward
from neuroncore_rtl.kernels.training.crossentropy import crossentropy
from neuroncore_rtl.spec.config import PRESETS, Config
from neuroncore_rtl.spec.formats import BF16, FP16, FP32, INT8, INT32

ROWS, COLUMNS = 10, 6


def in_a_tensor(program, gamma, x):
    tensor = program.space.sbuf("gain", gamma.format, gamma.shape)
    program.append(dma_copy(tensor, gamma))
    return tensor


PLACES = {
    "in HBM": lambda program, gamma, x: gamma,
    "in a tensor": in_a_tensor,
    "in a row": lambda program, gamma, x: load_row(program, gamma),
    "in rows": lambda program, gamma, x: replicate(load_row(program, gamma), x.shape[0]),
}


@pytest.mark.parametrize("placed", PLACES.values(), ids=PLACES)
@pytest.mark.parametrize("fmt", ("fp32", "bf16"))
def test_gamma_in_any_place_gives_the_same_bits(rng, placed, fmt):
    def norms(program):
        space = program.space
        x, gamma = space.hbm("x", "bf16", (ROWS, COLUMNS)), space.hbm("gamma", fmt, (COLUMNS,))
        out = [space.hbm(name, "fp32", (ROWS, COLUMNS)) for name in ("root", "layer")]
        rows = load(program, x)
        for target, kernel, count in zip(out, (rmsnorm, layernorm), (1, 2), strict=True):
            y = scratch(space, "y", rows)
            kernel(program, y, rows, *[placed(program, gamma, rows)] * count)
            store(program, target, y)

    x, gamma = rng.normal(size=(ROWS, COLUMNS)), rng.normal(1, 0.1, COLUMNS)
    inputs = {"x": x, "gamma": gamma}
    found = run(norms, inputs, preset="tiny", on="golden").arrays
    exact = x / np.sqrt(np.mean(x**2, axis=1, keepdims=True)) * gamma
    np.testing.assert_allclose(found["root"], exact, atol=2**-5)
    exact = (x - x.mean(1, keepdims=True)) / x.std(1, keepdims=True) * gamma + gamma
    np.testing.assert_allclose(found["layer"], exact, atol=2**-5)

    def streamed_norm(program):
        space = program.space
        x, gamma = space.hbm("x", "bf16", (ROWS, COLUMNS)), space.hbm("gamma", fmt, (COLUMNS,))
        streamed(program, rmsnorm, space.hbm("root", "fp32", (ROWS, COLUMNS)), x, gamma)

    again = run(streamed_norm, inputs, preset="tiny", on="golden").arrays
    assert np.array_equal(again["root"], found["root"])


def test_parameters_fill_tiles_that_are_larger_than_an_operand_of_the_array(rng):
    def norm(program):
        x, y = (program.space.hbm(name, "fp32", (ROWS, COLUMNS)) for name in "xy")
        gamma = program.space.hbm("gamma", "bf16", (COLUMNS,))
        streamed(program, lambda program, y, x: rmsnorm(program, y, x, gamma), y, x)

    x, gamma = rng.normal(size=(ROWS, COLUMNS)), 2.0 ** rng.integers(-2, 3, COLUMNS)
    result = run(norm, {"x": x, "gamma": gamma}, preset=Config(rows=8, columns=4), on="golden")
    exact = x / np.sqrt(np.mean(x**2, axis=1, keepdims=True)) * gamma
    np.testing.assert_allclose(result.arrays["y"], exact, atol=2**-7)


def test_heads_in_hbm_share_keys_and_values(rng):
    def grouped(program, loaded):
        space = program.space
        queries = [space.hbm(f"q{number}", "bf16", (4, ROWS)) for number in range(3)]
        keys, values = space.hbm("k", "bf16", (4, ROWS)), space.hbm("v", "bf16", (ROWS, 5))
        out = space.hbm("out", "fp32", (ROWS, 15))
        k_t, v = (load(program, keys), load(program, values)) if loaded else (keys, values)
        heads = [Head(load(program, q).tiles[0] if loaded else q, k_t, v) for q in queries]
        store(program, out, attention(program, heads, fmt="fp32").out)

    inputs = {f"q{number}": rng.normal(size=(4, ROWS)) for number in range(3)}
    inputs |= {"k": rng.normal(size=(4, ROWS)), "v": rng.normal(size=(ROWS, 5))}
    found = []
    for loaded in (False, True):
        result = run(lambda program, how=loaded: grouped(program, how), inputs, preset="tiny", on="golden")
        found.append(result.arrays["out"])
        copies = [entry for entry in result.program.entries if entry.instruction.name == "DMA_COPY"]
        # One tile of each q and k, three of v and of the result.
        assert len(copies) == 3 + 1 + 3 + 3
    assert np.array_equal(*found)
    scores = inputs["q1"].T @ inputs["k"] / 2
    weights = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    np.testing.assert_allclose(found[0][:, 5:10], weights @ inputs["v"], atol=2**-5)


def test_a_tensor_is_a_matrix_of_one_tile(rng):
    def layer(program):
        space = program.space
        x, w = space.hbm("x", "bf16", (4, 4)), space.hbm("w", "bf16", (4, COLUMNS))
        out, weights = space.hbm("out", "fp32", (4, COLUMNS)), space.hbm("weights", "fp32", (4, COLUMNS))
        tokens, result = space.sbuf("tokens", "bf16", (4,)), space.sbuf("result", "fp32", (COLUMNS,))
        program.append(dma_copy(tokens, x))
        scores = linear(program, transpose(program, tokens), w, fmt="fp32")
        softmax(program, result, scores.tiles[0])
        store(program, out, scores)
        store(program, weights, result)

    x, w = rng.normal(size=(4, 4)), rng.normal(size=(4, COLUMNS))
    found = run(layer, {"x": x, "w": w}, preset="tiny", on="golden").arrays
    np.testing.assert_allclose(found["out"], x @ w, atol=2**-4)
    powers = np.exp(found["out"])
    np.testing.assert_allclose(found["weights"], powers / powers.sum(1, keepdims=True), atol=2**-12)


def test_a_residual_in_hbm_is_loaded(rng):
    def layer(program):
        space = program.space
        x_t, w, before = (space.hbm(name, "bf16", (ROWS, ROWS)) for name in ("x_t", "w", "before"))
        store(program, space.hbm("y", "fp32", (ROWS, ROWS)), linear(program, x_t, w, residual=before, fmt="fp32"))

    inputs = {name: rng.integers(-3, 4, (ROWS, ROWS)) for name in ("x_t", "w", "before")}
    found = run(layer, inputs, preset="tiny", on="golden").arrays["y"]
    assert np.array_equal(found, inputs["x_t"].T @ inputs["w"] + inputs["before"])


def test_a_view_has_a_format_by_name():
    tensor = Program(PRESETS["tiny"]).space.hbm("x", "fp32", (4,))
    assert tensor.bitcast("int32").format is INT32 and tensor.bitcast(INT32).format is INT32
    with pytest.raises(ValueError, match="x: format must have 32 bits, not 'bf16'"):
        tensor.bitcast("bf16")


PROGRAM = Program(PRESETS["tiny"])
SPACE = PROGRAM.space


def hbm(*shape, fmt=BF16, name="x"):
    return SPACE.hbm(name, fmt, shape)


def loaded(*shape, fmt=BF16, name="x"):
    return load(PROGRAM, hbm(*shape, fmt=fmt, name=name))


MATRIX, VECTOR, WEIGHTS = hbm(ROWS, COLUMNS, name="matrix"), hbm(COLUMNS, fmt=FP32), hbm(COLUMNS, COLUMNS)
X, TILE = place_rows(SPACE, "x", BF16, ROWS, COLUMNS), SPACE.sbuf("tile", BF16, (COLUMNS,), 2)
IMAGE = hbm(4, 3, 3)


def matrix_of_tiles(*rows):
    return Rows(tuple(SPACE.sbuf("q", BF16, (COLUMNS,), count) for count in rows))


def attend(queries=4, keys=8, fmt=BF16, **options):
    shapes = (3, queries), (3, keys), (8, 2)
    return attention(PROGRAM, [Head(*(loaded(*shape, fmt=fmt) for shape in shapes))], **options)


def attend_backward(dout):
    heads = [Head(*(loaded(8, 8) for _ in range(3)))]
    return attention_backward(PROGRAM, heads, attention(PROGRAM, heads), dout)


def entropy(scale):
    tensors = [hbm(2, 4, fmt=FP32) for _ in range(4)]
    return streamed(PROGRAM, partial(crossentropy, scale=scale), tensors[:2], tensors[2:])


def multiply(c, a, b, formats=(BF16, BF16, BF16)):
    return matmul(PROGRAM, *(hbm(*shape, fmt=fmt) for shape, fmt in zip((c, a, b), formats, strict=True)))


GAMMA = r"gamma must be a vector \[6\] in HBM, a tensor \[6\] in SBUF with it in every partition, or Rows, not "
SHAPES = r"c, a, b must be \[M, N\], \[K, M\], \[K, N\], not "
FORMATS = "must have the same format of bf16.*, not "
REFUSED = [
    (lambda: rmsnorm(PROGRAM, X, X, np.ones(6)), f"{GAMMA}ndarray: numbers are inputs of `run`, by name"),
    (lambda: layernorm(PROGRAM, X, X, VECTOR, hbm(5)), r"beta must have one number per column, shape \[6\], not \[5\]"),
    (lambda: rmsnorm(PROGRAM, X, X, TILE), r"gamma must be in all 4 partitions of a tile, not 2 \(see `load_row`\)"),
    (lambda: rows_like(PROGRAM, MATRIX, X), r"parameters must have one number per column, shape \[6\], not \[10, 6\]"),
    (lambda: rmsnorm(PROGRAM, X, MATRIX, VECTOR),
     r"x must be Rows, or a tensor .*, not matrix \[10, 6\] in HBM \(kernels.tiling has"),
    (lambda: tiles_of(X, TILE), r"tile: tiles must have the rows of x\[0:4\]'s, \[4, 4, 2\], not \[2\]"),
    (lambda: scratch(SPACE, "y", SPACE.sbuf("cube", FP32, (2, 3))), r"a matrix must be Rows, .*, not cube \[2, 3\]"),
    (lambda: Rows(TILE), r"Rows: tiles must be tensors in SBUF or PSUM, such as Rows\(\(tile,\)\), not Tensor"),
    (lambda: Rows((TILE, TILE[:, :5])),
     r"Rows: tiles must have the same columns and format, not 6 bf16 \(tile\), 5 bf16 \(tile\)"),
    (lambda: replicate(TILE, 10, 4),
     "tile: rows, and lanes as rows of a tile, must be .*, a tile at most 2 rows, not 10 and 4"),
    (lambda: place_rows(SPACE, "y", "fp32", 0, 2.5),
     "y: rows and columns must be integers of at least 1, not 0 and 2.5"),
    (lambda: load(PROGRAM, X), "load: the source must be a matrix in HBM, not Rows"),
    (lambda: loaded(8), r"x: shape must be \[rows, columns\], not \[8\]"),
    (lambda: load_row(PROGRAM, MATRIX), r"load_row: the source must be a vector \[columns\] in HBM, not \[10, 6\]"),
    (lambda: store(PROGRAM, X, X), "store: the target must be a matrix in HBM, not Rows"),
    (lambda: store(PROGRAM, MATRIX, loaded(4, 8)), r"matrix: shape must be \[4, 8\], not \[10, 6\]"),
    (lambda: streamed(PROGRAM, softmax, MATRIX, X), "streamed: results, operands and shared must be in HBM, not Rows"),
    (lambda: streamed(PROGRAM, softmax, MATRIX, hbm(4, 8)), r"x: shape must be \[10, columns\], not \[4, 8\]"),
    (lambda: streamed(PROGRAM, rmsnorm, MATRIX, MATRIX, MATRIX),
     r"matrix: shape of shared parameters must be \[columns\], not \[10, 6\]"),
    (lambda: entropy(scale=0), "crossentropy: scale must not be zero, not 0"),
    (lambda: attention(PROGRAM, []), r"attention: heads must be a list of Head\(q_t, k_t, v\), at least one, not \[\]"),
    (lambda: attention(PROGRAM, [Head(TILE, TILE, np.ones((6, 6)))]), "v must be Rows, or a tensor"),
    (lambda: attention(PROGRAM, [Head(matrix_of_tiles(4, 2), matrix_of_tiles(2, 4), loaded(6, 6))]),
     r"k_t: tiles must have the rows of q_t's, \[4, 2\], not \[2, 4\]"),
    (lambda: attend(keys=6), r"q_t, k_t, v must be \[width, 4\], \[width, 8\], \[8, features\], not"),
    (lambda: attend(queries=9, causal=True), "queries must be at most the 8 keys if causal, not 9"),
    (lambda: attend(scale=-1.0), "scale must be above 0, not -1.0"),
    (lambda: attend(fmt=FP32), "q_t, k_t, v: formats must be among .*, the same for q_t and k_t, not fp32, fp32, fp32"),
    (lambda: attend_backward(loaded(8, 4, name="dout")),
     r"dout: shape must be \[8, 8\], in the same tiles, not \[8, 4\]"),
    (lambda: attend_backward(loaded(8, 8, fmt=FP32, name="dout")), "dout: format must be bf16, not fp32"),
    (lambda: transpose(PROGRAM, SPACE.sbuf("wide", FP32, (4,))),
     "x_t: format must be one that the array multiplies in one pass, such as bf16, not fp32"),
    (lambda: product(PROGRAM, hbm(4, 8), hbm(4, 8, fmt=FP32)), f"product: operands {FORMATS}bf16 and fp32"),
    (lambda: product(PROGRAM, hbm(4, 8), hbm(5, 8), name="scores"),
     r"scores: operands must be \[K, M\] and \[K, N\], not \[4, 8\] and \[5, 8\]"),
    (lambda: product(PROGRAM, hbm(4, 8), hbm(4, 8), factors=loaded(8, 8), finish=print),
     "product: factors must not be given beside finish"),
    (lambda: linear(PROGRAM, X, WEIGHTS),
     r"y: operands must be \[K, M\] and \[K, N\], not \[10, 6\] and \[6, 6\] \(`transpose` gives"),
    (lambda: linear(PROGRAM, X, MATRIX, residual=X),
     r"y: residual must be \[6, 6\] in tiles of 4 rows, not \[10, 6\] in tiles of \[4, 4, 2\]"),
    (lambda: linear(PROGRAM, TILE[:, :2], hbm(2, 6), residual=Rows((TILE[:1], TILE[1:]))),
     r"y: residual must be \[2, 6\] in tiles of 4 rows, not \[2, 6\] in tiles of \[1, 1\]"),
    (lambda: linear_t(PROGRAM, MATRIX, X, TILE),
     r"y_t: bias must be a vector \[6\] in HBM, or the result of `column_of`, not Tensor"),
    (lambda: linear_t(PROGRAM, MATRIX, X, hbm(7, name="bias")), r"bias: shape must be \[6\], not \[7\]"),
    (lambda: linear(PROGRAM, MATRIX, [[1.0]]), "y: b must be Rows, or a tensor"),
    (lambda: matmul(PROGRAM, MATRIX, X, X), r"c, a, b must be matrices in HBM \(`product` has others\), not Rows"),
    (lambda: multiply((4, 4), (5, 4), (6, 4)), rf"{SHAPES}\(4, 4\), \(5, 4\), \(6, 4\)"),
    (lambda: multiply((4, 5), (5, 4), (5, 4)), rf"{SHAPES}\(4, 5\), \(5, 4\), \(5, 4\)"),
    (lambda: multiply(*[(4, 4)] * 3, (INT32, INT32, INT32)), f"a and b {FORMATS}int32 and int32"),
    (lambda: multiply(*[(4, 4)] * 3, (INT32, FP16, BF16)), f"a and b {FORMATS}fp16 and bf16"),
    (lambda: swiglu_t(PROGRAM, hbm(4, 8), hbm(4, 9), X),
     r"swiglu_t: gate and up must have one shape, not \[4, 8\] and \[4, 9\]"),
    (lambda: rope(PROGRAM, X, np.ones((4, 2)), X), "cosines must be Rows, or a tensor .*, not ndarray"),
    (lambda: rope(PROGRAM, X, X, X),
     r"turned: x, cosines and sines must be .*, not \[10, 6\], \[10, 6\] and \[10, 6\]"),
    (lambda: sum_columns(PROGRAM, [[1.0]]), "x must be Rows, or a tensor .*, not list"),
    (lambda: conv2d(PROGRAM, IMAGE, hbm(5, 5, 4, 4)),
     r"a filter must fit the padded image \[3, 3\], not be \[5, 5\]"),
    (lambda: conv2d(PROGRAM, IMAGE, hbm(5, 5, 3, 4, name="w")),
     r"w: shape must be \[height, width, 4, channels\], not \[5, 5, 3, 4\]"),
    (lambda: conv2d(PROGRAM, hbm(4, 1, 1, fmt=INT8), hbm(1, 1, 4, 4, fmt=INT8)), f"y: operands {FORMATS}int8 and int8"),
    (lambda: conv2d(PROGRAM, MATRIX, hbm(5, 5, 4, 4)),
     r"matrix: shape must be \[channels, height, width\], not with images \[6\]"),
    (lambda: ConvWindow(stride=(0, 1)), r"stride must be two integers of at least 1, not \(0, 1\)"),
    (lambda: owners(PROGRAM, 21, 4), "heads must divide the 21 features of a token, not 4"),
]  # fmt: skip
"""Calls that must raise errors, and the messages."""

WITHOUT_LINE = "Rows", "dout", "stride", "heads must divide"


@pytest.mark.parametrize(("call", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_other_operands_are_refused_with_the_rule_and_the_line(call, message):
    line = "" if message.startswith(WITHOUT_LINE) else ".*test_operands.py"
    with pytest.raises(ValueError, match=f"^{message}{line}"):
        call()
