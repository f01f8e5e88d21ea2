"""Calls that return indices, against plain loops."""

import numpy as np
import pytest

from tests.frontends.nki.kernels import result, run_kernel, write_kernel

RNG = np.random.default_rng(41)


def bounds(ids):
    n = len(ids)
    first = [next(j for j in range(i, -1, -1) if j == 0 or ids[j - 1] != ids[i]) for i in range(n)]
    last = [next(j for j in range(i, n) if j == n - 1 or ids[j + 1] != ids[i]) + 1 for i in range(n)]
    return np.where(ids == 0, [[n] * n, [-1] * n], [first, last])


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
@pytest.mark.parametrize("n, where", [(1, "sbuf"), (2, "sbuf"), (9, "sbuf"), (64, "sbuf"), (9, "psum")])
def test_bounds_of_sequences(tmp_path, dtype, n, where):
    kernel = write_kernel(tmp_path, f"""
held, b = (nl.ndarray(shape, dtype=x.dtype, buffer=nl.sbuf) for shape in (x.shape, out.shape))
a = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.{where})
nisa.dma_copy(dst=held, src=x)
nisa.tensor_copy(dst=a, src=held)
nisa.sequence_bounds(dst=b, segment_ids=a)
""", out="(1, 2, x.shape[1]), x.dtype", stores="b")  # fmt: skip
    for ids in (RNG.integers(0, 4, n), np.sort(RNG.integers(0, n, n)), np.zeros(n, int), np.ones(n, int)):
        assert np.array_equal(result(kernel, ids[None].astype(dtype))[0], bounds(ids))


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
@pytest.mark.parametrize("n", [1, 8, 37])
def test_places_of_what_is_not_zero(tmp_path, dtype, n):
    kernel = write_kernel(tmp_path, """
a, b = nl.load(x), nl.ndarray((x.shape[0], x.shape[1] + 1), dtype=nl.int32, buffer=nl.sbuf)
nisa.memset(dst=b, value=77)
nisa.nonzero_with_count(dst=b, src=a, index_offset=16, padding_val=-5)
""", stores="b")  # fmt: skip
    x = RNG.integers(-2, 3, (33, n)).astype(dtype)
    x[16], x[32] = 0, 3
    found = run_kernel(kernel, x, preset="full").outputs[0]
    for p in range(33):
        places = np.flatnonzero(x[p]) + 16
        theirs = [*places, *[-5] * (n - len(places)), len(places)] if p % 16 == 0 else [77] * (n + 1)
        assert found[p].tolist() == theirs


def test_places_of_what_is_replaced(tmp_path):
    kernel = write_kernel(tmp_path, """
a, v = nl.load(x), nl.load(vals)
places = nl.ndarray((1, 8), dtype=nl.int32, buffer=nl.sbuf)
nisa.nc_match_replace8(dst=a, data=a, vals=v, imm=0.0, dst_idx=places)
""", parameters="x, vals", stores="a, places")  # fmt: skip
    x = np.float32([[1, 2, 3, 4, 8, 8, 8, 8, 8, 8, 8]])
    found, at = run_kernel(kernel, x, np.float32([[3] + [8] * 7])).outputs
    assert at.tolist() == [[2, 10, 9, 8, 7, 6, 5, 4]] and found.tolist() == [[1, 2, 0, 4] + [0] * 7]
