"""Functions of `nki.language` on tiles, against float64; signs of zeros of functions and of copies, against numpy."""

import numpy as np
import pytest

from neuroncore_rtl import Program, dma_copy, instructions, run
from neuroncore_rtl.frontends.nki.lowering.operators import ACTIVATIONS
from neuroncore_rtl.tb.check.oracles import accuracy, functions
from tests.frontends.nki.kernels import result, results_of, store_kernel, write_kernel

RNG = np.random.default_rng(8)

NEAR = 4e-7
"""Absolute error permitted where a function crosses zero away from the origin."""


@pytest.mark.parametrize("name", sorted(set(ACTIVATIONS) - {"identity"}))
def test_functions_are_those_of_float64(tmp_path, name):
    kernel = store_kernel(tmp_path, f"nl.{name}(nl.load(x))")
    x = (RNG.normal(size=(4, 500)) * np.exp2(RNG.uniform(-4, 12, (4, 500)))).astype(np.float32)
    x = np.abs(x) if name in ("log", "sqrt", "rsqrt") else x
    y, function = result(kernel, x), ACTIVATIONS[name]
    with np.errstate(invalid="ignore"):
        near = np.abs(y - functions.reference(function, x)) < NEAR
    assert np.all((accuracy.errors(function, x, y) <= 1.7) | near)


def test_the_tangent_is_the_sine_by_the_cosine(tmp_path):
    kernel = store_kernel(tmp_path, "nl.tan(nl.load(x))")
    x = RNG.uniform(-20, 20, (4, 500)).astype(np.float32)
    exact = np.tan(x.astype(np.float64))
    assert np.all(np.abs(result(kernel, x) - exact) <= 3 * accuracy.last_place(exact))


X = np.float32([[-0.0, 0.0, -2.0, np.inf, -1e-45, 3.5, -np.inf, np.nan], [0.0, -0.0, -0.0, 0.0, 1.0, -0.0, 0.0, -0.0]])
ZEROS = np.float32([[-0.0, 0.0]])


def same_bits(found: np.ndarray, wanted: np.ndarray) -> bool:
    """Return whether arrays are equal, with the signs of zeros; a NaN equals a NaN."""
    return np.array_equal(found, wanted, equal_nan=True) and np.array_equal(
        np.signbit(found)[found == 0], np.signbit(wanted)[wanted == 0]
    )


AT_ZEROS = [
    *((f"nl.{name}(a)", (-0.0, 0.0)) for name in ("gelu", "silu", "sign")),
    ("nl.relu(a)", (0.0, 0.0)),
    ("nl.tan(a)", (-0.0, 0.0)),
    ("nisa.activation(op=nl.copy, data=a)", (-0.0, 0.0)),
    ("nisa.activation(op=nl.tanh, data=a, scale=2.0)", (-0.0, 0.0)),
    ("nisa.activation(op=nl.tanh, data=a, scale=-2.0)", (0.0, -0.0)),
    ("nisa.activation(op=nl.rsqrt, data=a, scale=nl.full((1, 1), 4.0, nl.float32))", (-np.inf, np.inf)),
    ("nisa.activation(op=nl.copy, data=a, bias=nl.full((1, 1), 0.0, nl.float32))", (0.0, 0.0)),
    ("nisa.activation(op=nl.copy, data=a, bias=nl.full((1, 1), -0.0, nl.float32))", (-0.0, 0.0)),
]
"""Expressions, and their values at -0 and +0; `semantics.SIGNED_ZEROS` has more functions."""


def test_functions_at_both_zeros(tmp_path):
    found = results_of(tmp_path, "a = nl.load(x)", [expression for expression, _ in AT_ZEROS], ZEROS)
    for (expression, wanted), one in zip(AT_ZEROS, found, strict=True):
        assert same_bits(one, np.float32([wanted])), expression


@pytest.mark.parametrize(("op0", "imm0"), [("multiply", 1.0), ("add", -0.0), ("bypass", 0.0)])
def test_activate2_without_a_second_operation_keeps_both_zeros(tmp_path, op0, imm0):
    body = f"""
a, r = (nl.ndarray(x.shape, nl.float32, buffer=nl.sbuf) for _ in range(2))
nisa.dma_copy(dst=a, src=x)
nisa.activate2(dst=r, op=nl.tanh, data=a, imm0={imm0}, imm1=0.0, op0=nl.{op0}, op1=nl.bypass)
"""
    assert same_bits(result(write_kernel(tmp_path, body, stores="r"), ZEROS), ZEROS)


@pytest.mark.parametrize(
    ("dtype", "on"),
    [(dtype, "golden") for dtype in ("float32", "bfloat16", "float16", "float8_e4m3")] + [("float32", "rtl")],
)
def test_a_row_in_all_partitions_is_a_copy(tmp_path, dtype, on):
    row = X[:, [0, 1, 2, 3, 5, 6, 7]].reshape(1, -1)
    expression = f"nl.copy(nl.broadcast_to(nl.load(x, dtype=nl.{dtype}), shape=(4, {row.size})))"
    kernel = store_kernel(tmp_path, expression, out=f"(4, {row.size}), nl.float32")
    assert same_bits(result(kernel, row, on=on), np.broadcast_to(row, (4, row.size)))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_transposition_is_a_copy(tmp_path, dtype):
    kernel = store_kernel(tmp_path, f"nl.transpose(nl.load(x, dtype=nl.{dtype}))", out="(4, 2), nl.float32")
    for x in (X[:, :4], X[:, 4:]):
        x = np.where(np.abs(x) == np.float32(1e-45), np.float32(-4), x)
        assert same_bits(result(kernel, x), x.T)


def test_cumulative_sums_start_at_the_first_number(tmp_path):
    body = """
a, r = (nl.ndarray(x.shape, nl.float32, buffer=nl.sbuf) for _ in range(2))
nisa.dma_copy(dst=a, src=x)
nisa.tensor_scalar_cumulative(dst=r, src=a, op0=nl.multiply, op1=nl.add, imm0=1.0)
"""
    zeros = np.float32([[-0.0, -0.0, 0.0, -0.0], [-0.0, -0.0, 1.0, -1.0]])
    assert same_bits(result(write_kernel(tmp_path, body, stores="r"), zeros), np.cumsum(zeros, 1))


def test_products_of_negative_zeros_sum_to_a_negative_zero(tmp_path):
    kernel = store_kernel(tmp_path, "nl.matmul(nl.load(x), nl.load(y), transpose_x=True)", "(2, 2), nl.float32", "x, y")
    x, y = np.float32([[-0.0, 1.0], [-0.0, 1.0]]), np.float32([[1.0, 0.0], [2.0, -0.0]])
    assert same_bits(result(kernel, x, y), np.float32([[-0.0, 0.0], [3.0, 0.0]]))


@pytest.mark.parametrize("on", ["golden", "rtl"])
def test_an_activation_of_a_program_keeps_both_zeros(on):
    def kernel(program: Program) -> None:
        x, y = (program.space.hbm(name, "fp32", (1, 2)) for name in "xy")
        tile = program.space.sbuf("tile", "fp32", (2,), 1)
        program.append(dma_copy(tile, x))
        program.append(instructions.activation(tile, tile, "rsqrt"))
        program.append(dma_copy(y, tile))

    found = run(kernel, {"x": ZEROS}, preset="tiny", on=on).arrays["y"]
    assert found.tolist() == [[-np.inf, np.inf]]
