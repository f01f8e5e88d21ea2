"""Signs of zeros, against numpy: functions of the scalar engine, and copies of numbers by the tensor engine."""

import numpy as np
import pytest

from neuroncore_rtl import Program, dma_copy, instructions, run
from neuroncore_rtl.frontends.nki import run_nki
from tests.frontends.nki.kernels import result, store_kernel, write_kernel

X = np.float32([[-0.0, 0.0, -2.0, np.inf, -1e-45, 3.5, -np.inf, np.nan], [0.0, -0.0, -0.0, 0.0, 1.0, -0.0, 0.0, -0.0]])
ZEROS = np.float32([[-0.0, 0.0]])


def same_bits(found: np.ndarray, wanted: np.ndarray) -> bool:
    """Return whether arrays are equal, with the signs of zeros; a NaN equals a NaN."""
    return np.array_equal(found, wanted, equal_nan=True) and np.array_equal(
        np.signbit(found)[found == 0], np.signbit(wanted)[wanted == 0]
    )


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [
        *((f"nl.{name}(a)", (-0.0, 0.0)) for name in ("tanh", "sqrt", "sin", "arctan", "erf", "gelu", "silu", "sign")),
        *((f"nl.{name}(a)", (-np.inf, np.inf)) for name in ("rsqrt", "reciprocal")),
        *((f"nl.{name}(a)", (0.0, 0.0)) for name in ("square", "abs", "relu")),
        *((f"nl.{name}(a)", (1.0, 1.0)) for name in ("exp", "cos")),
        ("nl.tan(a)", (-0.0, 0.0)),
        ("nisa.activation(op=nl.copy, data=a)", (-0.0, 0.0)),
        ("nisa.activation(op=nl.tanh, data=a, scale=2.0)", (-0.0, 0.0)),
        ("nisa.activation(op=nl.tanh, data=a, scale=-2.0)", (0.0, -0.0)),
        ("nisa.activation(op=nl.rsqrt, data=a, scale=nl.full((1, 1), 4.0, nl.float32))", (-np.inf, np.inf)),
        ("nisa.activation(op=nl.copy, data=a, bias=nl.full((1, 1), 0.0, nl.float32))", (0.0, 0.0)),
        ("nisa.activation(op=nl.copy, data=a, bias=nl.full((1, 1), -0.0, nl.float32))", (-0.0, 0.0)),
    ],
)
def test_functions_at_both_zeros(tmp_path, expression, wanted):
    kernel = store_kernel(tmp_path, expression.replace("(a", "(nl.load(x)").replace("data=a", "data=nl.load(x)"))
    assert same_bits(result(kernel, ZEROS), np.float32([wanted]))


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
    found = run_nki(kernel, row, preset="tiny", on=on).outputs[0]
    assert same_bits(found, np.broadcast_to(row, found.shape))


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
