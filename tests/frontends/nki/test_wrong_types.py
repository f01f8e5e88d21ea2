"""Arguments of wrong types, dimensions and bits: a sentence with the kernel's line, or the right numbers."""

import numpy as np
import pytest

from neuroncore_rtl.frontends.nki.indices.lines import explained
from tests.frontends.nki.kernels import result, run_kernel, write_kernel

X = np.arange(1, 33, dtype=np.float32).reshape(4, 8)
TILES = "a, j = nl.load(x), nl.arange(8)[None, :]\n"


def test_exceptions_of_functions_that_a_call_calls_remain():
    def own(values):
        return values[1]

    with pytest.raises(IndexError):
        explained(own)([])


@pytest.mark.parametrize("target", ["golden", "rtl"])
def test_views_of_psum_read_its_bits(tmp_path, target):
    kernel = write_kernel(tmp_path, """
sums = nl.ndarray(x.shape, nl.float32, buffer=nl.psum)
sums[...] = nl.load(x)
bits, high = nl.copy(sums.view(nl.int32)), sums.view(nl.uint32) >> 16
""", older=True, stores="bits, high")  # fmt: skip
    bits, high = run_kernel(kernel, -X, on=target).outputs
    assert np.array_equal(bits, (-X).view(np.int32)) and np.array_equal(high, (-X).view(np.uint32) >> 16)


SIGNED = np.array([[2**24 + 1, -5, 2**31 - 1, -(2**31)]], np.int32)
UNSIGNED = np.array([[5, 2**32 - 1, 2**31, 7]], np.uint32)


@pytest.mark.parametrize("op", ["add", "subtract", "multiply", "maximum", "minimum", "bitwise_and"])
@pytest.mark.parametrize("call", ["nisa.dma_copy(y, dst=x, dst_rmw_op=nl.{})", "nl.atomic_rmw(x, nl.load(y), nl.{})"])
def test_operations_of_dma_are_those_of_the_engines(tmp_path, call, op):
    found = result(write_kernel(tmp_path, f"{call.format(op)}\nreturn x", True, "x, y"), SIGNED, UNSIGNED)
    wide = getattr(np, op)(SIGNED.astype(object), UNSIGNED.astype(object))
    saturates = op in ("maximum", "minimum")
    assert found.tolist() == [[min(n, 2**31 - 1) if saturates else (n + 2**31) % 2**32 - 2**31 for n in wide[0]]]


@pytest.mark.parametrize("target", ["golden", "rtl"])
def test_sums_of_dma_are_exact(tmp_path, target):
    kernel = write_kernel(tmp_path, "nisa.dma_compute(dst=x, srcs=[x, x, y], reduce_op=nl.add)\nreturn x", True, "x, y")
    wide = 2 * SIGNED.astype(object) + UNSIGNED
    found = result(kernel, SIGNED, UNSIGNED, on=target)
    assert found.tolist() == [[(n + 2**31) % 2**32 - 2**31 for n in wide[0]]]


def test_truth_values_are_0_and_1_everywhere(tmp_path):
    kernel = write_kernel(tmp_path, "nl.atomic_rmw(x, nl.load(y), nl.add)\nreturn x", True, "x, y")
    assert result(kernel, (np.uint8([[0, 7]]), "bool_"), np.uint8([[0, 200]])).tolist() == [[0, 1]]
    assert result(write_kernel(tmp_path, "return x"), (np.array([[0, 0.5, np.nan]]), "bool_")).tolist() == [[0, 1, 1]]
    body = "out = nl.ndarray(x.shape, nl.bool_, buffer=nl.shared_hbm)\nnisa.dma_copy(dst=out, src=x)\nreturn out"
    with pytest.raises(ValueError, match="a bool_ tensor in HBM must get float32 from a tile: load x first"):
        result(write_kernel(tmp_path, body), X)


@pytest.mark.parametrize("target", ["golden", "rtl"])
def test_a_reduction_reads_the_exact_results_of_its_operation(tmp_path, target):
    kernel = write_kernel(tmp_path, """
a, b = nl.load(x), nl.load(y)
most = nl.ndarray((1, 1), nl.float32, buffer=nl.sbuf)
nisa.tensor_scalar_reduce(dst=a, data=b, op0=nl.minimum, operand0=-2, reduce_op=nl.add, reduce_res=most)
""", True, "x, y", stores="a, most")  # fmt: skip
    least, total = run_kernel(kernel, SIGNED, UNSIGNED, on=target).outputs
    assert least.tolist() == [[-2] * 4] and total == -8


def test_masks_of_whole_calls_have_an_effect(tmp_path):
    kernel = write_kernel(tmp_path, f"""{TILES}
filled = nisa.memset((4, 8), 3.0, nl.float32, mask=j < 5)
drawn = nl.rand((4, 8), mask=j < 5)
mean = nl.mean(a, 1, None, True, False)
both = nl.copy(a, mask=nl.logical_and(j < 5, j > 2))
""", older=True, stores="filled, drawn, mean, both")  # fmt: skip
    filled, drawn, mean, both = run_kernel(kernel, X).outputs
    columns = np.arange(8)
    assert np.array_equal(filled, np.where(columns < 5, 3, 0 * X)) and drawn[:, :5].all() and not drawn[:, 5:].any()
    assert not mean.any() and np.array_equal(both, np.where((columns < 5) & (columns > 2), X, 0))
