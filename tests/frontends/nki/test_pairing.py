"""Operands of different shapes with as many elements per partition, against numpy."""

import numpy as np
import pytest

from tests.frontends.nki.kernels import result, run_kernel, store_kernel, write_kernel

RNG = np.random.default_rng(47)
X = RNG.normal(size=(4, 24)).astype(np.float32)
Y = RNG.normal(size=(4, 48)).astype(np.float32)
ROWS = Y.reshape(4, 2, 24)[:, :, :12].reshape(4, 24)
"""Two rows of 12 elements with a gap behind each."""


def paired(tmp_path, call: str, tile: str = "nl.ndarray((4, 24), dtype=x.dtype, buffer=nl.sbuf)") -> np.ndarray:
    kernel = write_kernel(tmp_path, f"""
a, b = nl.load(x), nl.load(y)
c = {tile}
rows = b.reshape((4, 2, 24))[:, :, 0:12]
{call}
""", parameters="x, y", out="x.shape, x.dtype", stores="c")  # fmt: skip
    return result(kernel, X, Y)


def test_elements_are_paired_in_order(tmp_path):
    assert np.array_equal(paired(tmp_path, "nisa.tensor_copy(dst=c, src=rows)"), ROWS)
    assert np.array_equal(paired(tmp_path, "nisa.tensor_tensor(dst=c, data1=a, data2=rows, op=nl.add)"), X + ROWS)
    assert np.array_equal(paired(tmp_path, "nisa.tensor_scalar(dst=c, data=rows, op0=nl.add, operand0=1.0)"), ROWS + 1)
    powers = paired(tmp_path, "nisa.activation(dst=c, op=nl.exp, data=rows)")
    assert np.allclose(powers, np.exp(ROWS), rtol=1e-5)
    sums = "nisa.tensor_tensor_scan(dst=c, data0=nl.ones((4, 24), x.dtype), data1=rows, initial=0.0, op0=nl.multiply, "
    assert np.allclose(paired(tmp_path, f"{sums}op1=nl.add)"), ROWS.cumsum(1), atol=1e-5)


def test_windows_and_columns_are_paired_too(tmp_path):
    windows = "nisa.tensor_copy(dst=c, src=b.ap([[48, 4], [1, 8], [1, 3]], 0))"
    expected = np.lib.stride_tricks.sliding_window_view(Y, 3, axis=1)[:, :8].reshape(4, 24)
    assert np.array_equal(paired(tmp_path, windows), expected)
    call = "nisa.tensor_tensor(dst=c, data1=rows, data2=a.ap([[24, 4], [0, 6], [1, 4]], 0), op=nl.multiply)"
    assert np.array_equal(paired(tmp_path, call), ROWS * np.tile(X[:, :4], 6))


def test_a_destination_of_more_dimensions(tmp_path):
    tile = "nl.ndarray((4, 2, 3, 4), dtype=x.dtype, buffer=nl.sbuf)"
    call = "nisa.tensor_tensor(dst=c, data1=a, data2=rows, op=nl.subtract)"
    assert np.array_equal(paired(tmp_path, call, tile), X - ROWS)


def test_shapes_that_are_not_paired(tmp_path):
    across = "nisa.tensor_copy(dst=b.ap([[48, 4], [8, 6], [1, 4]], 0), src=b.ap([[48, 4], [12, 4], [1, 6]], 0))"
    with pytest.raises(ValueError, match=r"must have dimensions that divide each other, not \(4, 6, 4\) and"):
        paired(tmp_path, across)
    with pytest.raises(ValueError, match=r"shapes must broadcast, not \(4, 2, 11\) and \(4, 24\)"):
        paired(tmp_path, "nisa.tensor_copy(dst=c, src=rows[:, :, 0:11])")


def test_functions_broadcast_as_numpy_does(tmp_path):
    kernel = store_kernel(tmp_path, "nl.add(nl.load(x), nl.load(x).reshape((4, 2, 12)))")
    with pytest.raises(ValueError, match="shapes must broadcast"):
        run_kernel(kernel, X)
    kernel = store_kernel(tmp_path, "nl.add(nl.load(x)[0:4, 0], nl.load(x[0:1, 1:2])).broadcast_to(x.shape)")
    assert np.array_equal(run_kernel(kernel, X).outputs[0], np.broadcast_to(X[:, :1] + X[0, 1], X.shape))


@pytest.mark.parametrize("shape", [(24, 4), (96,), (2, 2, 24), (4, 4, 6)])
def test_elements_of_hbm_are_paired_with_those_of_a_tile(tmp_path, shape):
    kernel = write_kernel(tmp_path, """
tile = nl.ndarray((4, 2, 12), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=tile, src=x)
nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=2.0)
nisa.dma_copy(dst=out, src=tile)
other = nl.ndarray((8, 12), dtype=x.dtype, buffer=nl.shared_hbm)
nisa.dma_copy(dst=other, src=x)
return out, other
""", out="x.shape, x.dtype")  # fmt: skip
    x = X.reshape(shape)
    doubled, other = run_kernel(kernel, x).outputs
    assert np.array_equal(doubled, 2 * x) and np.array_equal(other, X.reshape(8, 12))


def test_copies_of_different_numbers_are_refused(tmp_path):
    kernel = write_kernel(tmp_path, "nisa.dma_copy(dst=out, src=x)", out="(5, 24), x.dtype")
    with pytest.raises(ValueError, match="shapes must broadcast"):
        run_kernel(kernel, X)
