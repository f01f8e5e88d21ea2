"""Operands that the library's kernels accept, and the messages for others."""

import numpy as np
import pytest

from neuroncore_rtl import Program, Rows, dma_copy, load, replicate, run, store, streamed
from neuroncore_rtl.kernels.library.attention import Head, attention
from neuroncore_rtl.kernels.library.layernorm import layernorm
from neuroncore_rtl.kernels.library.linear import linear, linear_t
from neuroncore_rtl.kernels.library.matmul import matmul
from neuroncore_rtl.kernels.library.rmsnorm import rmsnorm
from neuroncore_rtl.kernels.library.rope import rope
from neuroncore_rtl.kernels.library.softmax import softmax
from neuroncore_rtl.kernels.library.sums import sum_columns
from neuroncore_rtl.kernels.library.transpose import transpose
from neuroncore_rtl.kernels.program import place_rows, scratch, tiles_of
from neuroncore_rtl.kernels.tiling.transfer import load_row, rows_like
from neuroncore_rtl.spec.config import PRESETS, Config
from neuroncore_rtl.spec.formats import BF16, FP32, INT32

ROWS, COLUMNS = 10, 6


def in_hbm(program, gamma, x):
    return gamma


def in_a_tensor(program, gamma, x):
    tensor = program.space.sbuf("gain", gamma.format, gamma.shape)
    program.append(dma_copy(tensor, gamma))
    return tensor


def in_a_row(program, gamma, x):
    return load_row(program, gamma)


def in_rows(program, gamma, x):
    return replicate(load_row(program, gamma), x.shape[0])


@pytest.mark.parametrize("placed", (in_hbm, in_a_tensor, in_a_row, in_rows))
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
MATRIX, VECTOR = SPACE.hbm("matrix", BF16, (ROWS, COLUMNS)), SPACE.hbm("vector", FP32, (COLUMNS,))
X, TILE = place_rows(SPACE, "x", BF16, ROWS, COLUMNS), SPACE.sbuf("tile", BF16, (COLUMNS,), 2)


def matrix_of_tiles(*rows):
    return Rows(tuple(SPACE.sbuf("q", BF16, (COLUMNS,), count) for count in rows))


GAMMA = r"gamma must be a vector \[6\] in HBM, a tensor \[6\] in SBUF with it in every partition, or Rows, not "
REFUSED = {
    f"{GAMMA}ndarray: numbers are inputs of `run`, by name": lambda: rmsnorm(PROGRAM, X, X, np.ones(COLUMNS)),
    r"beta must have one number per column, shape \[6\], not \[5\]": lambda: layernorm(
        PROGRAM, X, X, VECTOR, SPACE.hbm("b", "fp32", (5,))
    ),
    r"gamma must be in all 4 partitions of a tile, not 2 \(see `load_row`\)": lambda: rmsnorm(PROGRAM, X, X, TILE),
    r"parameters must have one number per column, shape \[6\], not \[10, 6\]": lambda: rows_like(PROGRAM, MATRIX, X),
    r"x must be Rows, or a tensor .*, not matrix \[10, 6\] in HBM \(kernels.tiling has": lambda: rmsnorm(
        PROGRAM, X, MATRIX, VECTOR
    ),
    r"tile: tiles must have the rows of x\[0:4\]'s, \[4, 4, 2\], not \[2\]": lambda: tiles_of(X, TILE),
    r"a matrix must be Rows, .*, not cube \[2, 3\]": lambda: scratch(SPACE, "y", SPACE.sbuf("cube", FP32, (2, 3))),
    r"Rows: tiles must be tensors in SBUF or PSUM, such as Rows\(\(tile,\)\), not Tensor": lambda: Rows(TILE),
    r"Rows: tiles must have the same columns and format, not 6 bf16 \(tile\), 5 bf16 \(tile\)": lambda: Rows(
        (TILE, TILE[:, :5])
    ),
    "tile: rows, and lanes as rows of a tile, must be .*, a tile at most 2 rows, not 10 and 4": lambda: replicate(
        TILE, 10, 4
    ),
    "y: rows and columns must be integers of at least 1, not 0 and 2.5": lambda: place_rows(SPACE, "y", "fp32", 0, 2.5),
    r"load: the source must be a matrix in HBM, not Rows": lambda: load(PROGRAM, X),
    r"load_row: the source must be a vector \[columns\] in HBM, not \[10, 6\]": lambda: load_row(PROGRAM, MATRIX),
    "store: the target must be a matrix in HBM, not Rows": lambda: store(PROGRAM, X, X),
    "streamed: results, operands and shared must be in HBM, not Rows": lambda: streamed(PROGRAM, softmax, MATRIX, X),
    r"matrix: shape of shared parameters must be \[columns\], not \[10, 6\]": lambda: streamed(
        PROGRAM, rmsnorm, MATRIX, MATRIX, MATRIX
    ),
    r"attention: heads must be a list of Head\(q_t, k_t, v\), at least one, not \[\]": lambda: attention(PROGRAM, []),
    "v must be Rows, or a tensor": lambda: attention(PROGRAM, [Head(TILE, TILE, np.ones((6, 6)))]),
    r"k_t: tiles must have the rows of q_t's, \[4, 2\], not \[2, 4\]": lambda: attention(
        PROGRAM, [Head(matrix_of_tiles(4, 2), matrix_of_tiles(2, 4), place_rows(SPACE, "v", BF16, COLUMNS, 6))]
    ),
    "x_t: format must be one that the array multiplies in one pass, such as bf16, not fp32": lambda: transpose(
        PROGRAM, SPACE.sbuf("wide", FP32, (4,))
    ),
    r"y: operands must be \[K, M\] and \[K, N\], not \[10, 6\] and \[6, 6\] \(`transpose` gives": lambda: linear(
        PROGRAM, X, SPACE.hbm("w", BF16, (6, 6))
    ),
    r"y: residual must be \[6, 6\] in tiles of 4 rows, not \[10, 6\] in tiles of \[4, 4, 2\]": lambda: linear(
        PROGRAM, X, MATRIX, residual=X
    ),
    r"y: residual must be \[2, 6\] in tiles of 4 rows, not \[2, 6\] in tiles of \[1, 1\]": lambda: linear(
        PROGRAM, TILE[:, :2], SPACE.hbm("w", BF16, (2, 6)), residual=Rows((TILE[:1], TILE[1:]))
    ),
    r"y_t: bias must be a vector \[6\] in HBM, or the result of `column_of`, not Tensor": lambda: linear_t(
        PROGRAM, MATRIX, X, TILE
    ),
    r"c, a, b must be matrices in HBM \(`product` has others\), not Rows": lambda: matmul(PROGRAM, MATRIX, X, X),
    "y: b must be Rows, or a tensor": lambda: linear(PROGRAM, MATRIX, [[1.0]]),
    "cosines must be Rows, or a tensor .*, not ndarray": lambda: rope(PROGRAM, X, np.ones((4, 2)), X),
    "x must be Rows, or a tensor .*, not list": lambda: sum_columns(PROGRAM, [[1.0]]),
}
"""Expected messages, and the calls that must raise errors with them."""


@pytest.mark.parametrize("message", REFUSED)
def test_other_operands_are_refused_with_the_rule_and_the_line(message):
    line = "" if message.startswith("Rows") else ".*test_operands.py"
    with pytest.raises(ValueError, match=f"^{message}{line}"):
        REFUSED[message]()
