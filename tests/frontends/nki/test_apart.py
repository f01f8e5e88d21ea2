"""Operands and results without equal steps, or that need an intermediate copy."""

import numpy as np
import pytest

from tests.frontends.nki.kernels import result, run_kernel, write_kernel

RNG = np.random.default_rng(77)
X = RNG.integers(-8, 9, (4, 24)).astype(np.float32)

LOADED = """
a = nl.load(x)
{body}
nisa.dma_copy(dst=out, src=y)
"""


def compute(tmp_path, body, x, shape, dtype="float32", older=False):
    return result(write_kernel(tmp_path, LOADED.format(body=body), older, out=f"{shape}, nl.{dtype}"), x)


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_transpositions_of_dimensions_in_any_order(tmp_path, dtype):
    found = compute(tmp_path, """
y = nl.ndarray((4, 4), dtype=x.dtype, buffer=nl.psum)
turned = y.reshape((4, 2, 2)).permute((0, 2, 1))
nisa.nc_transpose(dst=turned, data=a[:, 0:8].reshape((4, 4, 2))[:, :, 0].reshape((4, 2, 2)).permute((0, 2, 1)))
""", X.astype(dtype), (4, 4), dtype)  # fmt: skip
    order = [0, 2, 1, 3]
    assert np.array_equal(found, X[:, 0:8:2][:, order].T[:, order])


@pytest.mark.parametrize("older", [False, True])
def test_an_assigned_product_overwrites_wherever_it_goes(tmp_path, older):
    product = "nisa.nc_matmul(a[:, 0:4], a[:, 4:8])" if older else "nl.matmul(a[:, 0:4], a[:, 4:8], transpose_x=True)"
    found = compute(tmp_path, f"""
y = nl.ndarray((4, 3, 4), dtype=nl.float32, buffer=nl.sbuf)
sums = nl.ndarray((4, 4), dtype=nl.float32, buffer=nl.psum)
whole = nl.ndarray((4, 4), dtype=nl.int32, buffer=nl.psum)
for again in range(2):
    sums[...] = {product}
y[:, 0] = sums
y[:, 1] = {product}
whole[...] = {product}
y[:, 2] = whole
""", X, (4, 3, 4), older=older)  # fmt: skip
    assert np.array_equal(found, np.repeat((X[:, :4].T @ X[:, 4:8])[:, None], 3, 1))


@pytest.mark.parametrize("memory", ["sbuf", "psum"])
def test_searches_in_one_memory_leave_no_place_as_all_ones(tmp_path, memory):
    kernel = write_kernel(tmp_path, f"""
a, y, z = (nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.{memory}) for _ in range(3))
at, again = (nl.ndarray((4, 8), dtype=nl.uint16, buffer=nl.{memory}) for _ in range(2))
nisa.dma_copy(dst=a, src=x)
nisa.dma_copy(dst=y, src=x)
nisa.memset(dst=y[:, 7:8], value=99)
nisa.nc_find_index8(dst=at, data=a, vals=y[:, 0:8])
nisa.nc_match_replace8(dst=z, data=a, vals=y[:, 0:8], imm=0, dst_idx=again)
""", stores="at, z")  # fmt: skip
    x = np.float32([RNG.permutation(24) + 1 for _ in range(4)])
    at, left = run_kernel(kernel, x).outputs
    assert np.array_equal(at, np.tile([0, 1, 2, 3, 4, 5, 6, 65535], (4, 1)))
    x[:, :7] = 0
    assert np.array_equal(left, x)


def test_bits_of_integers_become_floats_and_stay_in_their_type_in_psum(tmp_path):
    kernel = write_kernel(tmp_path, """
out, few = (nl.ndarray((3, *x.shape), dtype=d, buffer=nl.shared_hbm) for d in (nl.float32, nl.uint8))
a, y, z = nl.load(x), nl.ndarray((4, 3, 24), nl.float32), nl.ndarray((4, 3, 24), nl.uint8, buffer=nl.psum)
for tile in (y, z):
    tile[:, 0] = a & (a << 3)
    tile[:, 1] = a << 3
    tile[:, 2] = nisa.scalar_tensor_tensor(a, nl.bitwise_xor, 5, nl.bitwise_or, a)
for n in range(3):
    nl.store(out[n], value=y[:, n])
    nl.store(few[n], value=z[:, n])
return out, few
""", older=True)  # fmt: skip
    x = RNG.integers(0, 256, (4, 24)).astype(np.uint8)
    found, few = run_kernel(kernel, x).outputs
    shifted = x << np.uint8(3)
    assert np.array_equal(few, [x & shifted, shifted, (x ^ 5) | x])
    wide = x.astype(int) << 3
    assert np.array_equal(found, [x & shifted, wide, (x ^ 5) | x])


def test_integers_beside_a_running_result_are_exact(tmp_path):
    kernel = write_kernel(tmp_path, """
a, y = (nl.ndarray(x.shape, dtype=nl.int32, buffer=nl.sbuf) for _ in range(2))
top = nl.ndarray((4, 1), dtype=nl.int32, buffer=nl.sbuf)
nisa.dma_copy(dst=a, src=x)
nisa.tensor_scalar_reduce(dst=y, data=a, op0=nl.bitwise_xor, operand0=1, reduce_op=nl.maximum, reduce_res=top,
                          reduce_cmd=nisa.reduce_cmd.load_reduce, reduce_init=3.0)
""", stores="y, top")  # fmt: skip
    x = RNG.integers(-(2**24), 2**24, (4, 24)).astype(np.int32) * 64 + 5
    found, most = run_kernel(kernel, x).outputs
    assert np.array_equal(found, x ^ 1) and np.array_equal(most[:, 0], (x ^ 1).max(1).astype(np.float32))


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_one_partition_that_all_have(tmp_path, dtype):
    kernel = write_kernel(tmp_path, f"""
out, flipped, sums = (nl.ndarray(one, dtype=nl.float32, buffer=nl.shared_hbm) for one in ((2, 6, 4), (4, 4), (1, 6)))
a = nl.load(x)
row, back = a[2:3, 0:6].broadcast_to((4, 6)), a.ap([[0, 4], [-1, 6]], offset=5)
for n, one in enumerate((row, back)):
    total = nl.ndarray((4, 6), dtype=nl.{"int32" if dtype == "int8" else dtype}, buffer=nl.psum)
    nisa.nc_matmul(dst=total, stationary=one[:, 0:4], moving=one)
    nisa.dma_copy(dst=out[n], src=total.permute((1, 0)))
turned = nl.ndarray((4, 4), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_transpose(dst=turned, src=row[:, 0:4])
nisa.dma_copy(dst=flipped, src=turned)
total = nl.ndarray((1, 6), dtype=nl.float32, buffer=nl.sbuf)
nisa.tensor_partition_reduce(dst=total, op=nl.add, data=row)
nisa.dma_copy(dst=sums, src=total)
return out, flipped, sums
""")  # fmt: skip
    found, flipped, sums = run_kernel(kernel, X.astype(dtype), preset="small").outputs
    for one, row in zip(found, (X[2, :6], X[0, 5::-1]), strict=True):
        assert np.array_equal(one, 4 * np.outer(row, row[:4]))
    assert np.array_equal(flipped, np.tile(X[2, :4, None], (1, 4))) and np.array_equal(sums[0], 4 * X[2, :6])


def test_a_row_of_many_dimensions_that_all_partitions_have(tmp_path):
    x = RNG.integers(-99, 99, (4, 96)).astype(np.int16)
    found = compute(tmp_path, """
row = a.reshape((4, 3, 2, 2, 2, 2, 2))[1:2, 0:3:2, :, :, :, 0]
y = nl.ndarray((4, 2, 2, 2, 2, 2), dtype=nl.float32, buffer=nl.sbuf)
nisa.tensor_scalar(dst=y, data=row.broadcast_to(y.shape), op0=nl.add, operand0=1)
""", x, (4, 2, 2, 2, 2, 2))  # fmt: skip
    row = x[1:2].reshape(1, 3, 2, 2, 2, 2, 2)[:, 0:3:2, :, :, :, 0]
    assert np.array_equal(found, np.broadcast_to(row + 1, found.shape))


def test_integers_meet_numbers_with_a_fraction(tmp_path):
    kernel = write_kernel(tmp_path, """
out, sums = (nl.ndarray(shape, nl.int32, buffer=nl.shared_hbm) for shape in ((4, *x.shape), (4, 1)))
a, total = nl.load(x), nl.ndarray((4, 1), dtype=nl.int32)
nl.store(out[0], value=nl.multiply(a, 0.75))
nl.store(out[1], value=nl.subtract(2.25, a))
nl.store(out[2], value=nisa.scalar_tensor_tensor(a, nl.multiply, 1.5, nl.add, a))
y = nisa.tensor_scalar_reduce(data=a, op0=nl.multiply, operand0=0.5, reduce_op=nl.add, reduce_res=total)
nl.store(out[3], value=y)
nl.store(sums, value=total)
return out, sums
""", older=True)  # fmt: skip
    x = X.astype(np.int32)
    found, sums = run_kernel(kernel, x).outputs
    assert np.array_equal(found, [np.rint(x * 0.75), np.rint(2.25 - x), np.rint(x * 2.5), np.rint(x * 0.5)])
    assert np.array_equal(sums[:, 0], np.rint((x * 0.5).sum(1)))
