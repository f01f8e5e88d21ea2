"""Calls that become several instructions, some of which return indices."""

import numpy as np
import pytest

from tests.frontends.nki.kernels import result, run_kernel, store_kernel, write_kernel

RNG = np.random.default_rng(51)


@pytest.mark.parametrize("shape", [(9, 5), (3, 2, 7), (6,)])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_dma_compute_adds_in_fp32(tmp_path, shape, count):
    call = f"nisa.dma_compute(dst=out, srcs=[x[n] for n in range({count})], reduce_op=nl.add, scales=[1.0] * {count})"
    kernel = write_kernel(tmp_path, call, out="x.shape[1:], nl.float32")
    x = RNG.integers(-60, 60, (3, *shape)).astype(np.float32)
    assert np.array_equal(result(kernel, (x, "bfloat16")), x[:count].sum(0))


def test_a_copy_adds_to_what_is_in_hbm(tmp_path):
    kernel = write_kernel(tmp_path, """
tile = nl.load(x)
nl.store(out, value=nl.full(x.shape, 1.5, dtype=x.dtype))
nisa.dma_copy(dst=out[2:4], src=tile[2:4], dst_rmw_op=np.add)
""", older=True, out="x.shape, x.dtype")  # fmt: skip
    x = RNG.normal(size=(4, 10)).astype(np.float32)
    theirs = np.full_like(x, 1.5)
    theirs[2:4] += x[2:4]
    assert np.array_equal(result(kernel, x), theirs)


def test_where_has_the_type_that_holds_both(tmp_path):
    kernel = store_kernel(tmp_path, "nl.where(nl.load(k), nl.load(x), nl.load(y))", "x.shape, nl.float32", "k, x, y")
    k, x = RNG.integers(0, 2, (2, 4, 12))
    y = RNG.normal(size=(4, 12)).astype(np.float32)
    assert np.array_equal(result(kernel, (k, "int8"), (x, "int8"), y), np.where(k, x, y).astype(np.float32))


def test_quotients_of_integers_are_numbers_with_a_fraction(tmp_path):
    kernel = write_kernel(tmp_path, """
tile = nl.load(x)
nl.store(out[0], value=tile / 4)
nl.store(out[1], value=nl.floor(tile / tile[:, 0:1], dtype=nl.int32))
""", older=True, out="(2, *x.shape), nl.float32")  # fmt: skip
    x = RNG.integers(1, 99, (4, 9)).astype(np.int32)
    assert np.array_equal(result(kernel, x), np.stack([x / 4, x // x[:, :1]]))


def test_tiles_broadcast_to_each_other(tmp_path):
    kernel = write_kernel(tmp_path, """
a, b = nl.load(x), nl.load(y)
wide, row = a.reshape((4, 5, 1)), b.reshape((1, 1, 3))
nl.store(out[0], value=nl.subtract(wide, row))
nl.store(out[1], value=nl.where(nl.equal(wide, row), wide, row))
""", older=True, parameters="x, y", out="(2, 4, 5, 3), nl.float32")  # fmt: skip
    x, y = RNG.integers(0, 4, (4, 5)).astype(np.float32), np.float32([[0, 1, 2]])
    wide = np.broadcast_to(x[..., None], (4, 5, 3))
    assert np.array_equal(result(kernel, x, y), np.stack([wide - y, np.where(wide == y, wide, y)]))


def test_an_argument_may_be_asked_for(tmp_path):
    kernel = write_kernel(tmp_path, "return x if bias else None", parameters="x, bias=None")
    assert np.array_equal(result(kernel, np.ones((2, 2), np.float32), np.ones((2, 1), np.float32)), np.ones((2, 2)))


def test_operands_of_many_dimensions(tmp_path):
    kernel = write_kernel(tmp_path, """
wide, y = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf), nl.ndarray(out.shape, dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=wide, src=x)
column = nl.load(x[:, 0, 0, 0, 0, 0:1])
part = wide[:, 0:2, 0:3, 0:2, 0:3, 0:2]
squares = nl.ndarray(out.shape, dtype=x.dtype, buffer=nl.sbuf)
nisa.activation(dst=squares, data=part, op=nl.square, scale=2.0)
nisa.tensor_scalar(dst=y, data=part, op0=nl.multiply, operand0=2.0, op1=nl.add, operand1=column)
nisa.tensor_tensor(dst=y, data1=y, data2=wide[:, 1:3, 1:4, 1:3, 1:4, 1:3], op=nl.add)
nisa.tensor_tensor(dst=y, data1=y, data2=squares, op=nl.add)
""", out="(4, 2, 3, 2, 3, 2), x.dtype", stores="y")  # fmt: skip
    x = RNG.normal(size=(4, 3, 4, 3, 4, 3)).astype(np.float32)
    run = run_kernel(kernel, x)
    theirs = x[:, 0:2, 0:3, 0:2, 0:3, 0:2] * np.float32(2) + x[:, 0, 0, 0, 0, 0].reshape(4, 1, 1, 1, 1, 1)
    squares = np.square(2 * x[:, 0:2, 0:3, 0:2, 0:3, 0:2])
    assert np.array_equal(run.outputs[0], theirs + x[:, 1:3, 1:4, 1:3, 1:4, 1:3] + squares)
    assert run.inserted == {"instructions of fewer dimensions": 3}


def test_copies_of_many_dimensions(tmp_path):
    kernel = write_kernel(tmp_path, "", out="(2, 2, 2, 2, 2, 2, 2), x.dtype", stores=f"x[{', '.join(['1:3'] * 7)}]")
    x = RNG.normal(size=(3,) * 7).astype(np.float32)
    run = run_kernel(kernel, x)
    assert np.array_equal(run.outputs[0], x[(slice(1, 3),) * 7])
    assert run.inserted == {"copies of fewer dimensions": 3}


@pytest.mark.parametrize("near", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32"])
@pytest.mark.parametrize("shape", [(4, 3), (2, 3, 4), (4, 2, 3, 2)])
def test_transpositions_exchange_the_first_and_the_last_dimension(tmp_path, near, dtype, shape):
    order = {2: (1, 0), 3: (2, 1, 0), 4: (3, 1, 2, 0)}[len(shape)]
    kernel = write_kernel(tmp_path, f"""
turned = nisa.dma_transpose(nl.load(x) if {near} else x, axes={order})
""", older=True, stores="turned")  # fmt: skip
    x = RNG.integers(-99, 99, shape).astype(np.float32)
    assert np.array_equal(result(kernel, (x, dtype)), x.transpose(order))


def test_a_transposed_load_has_zeros_beside_its_mask(tmp_path):
    kernel = write_kernel(tmp_path, """
i, j = nl.mgrid[0:4, 0:4]
nl.store(out, value=nl.load_transpose2d(x[i + 1, j], dtype=nl.float32, mask=(i + 1 < x.shape[0]) & (j < 3)))
""", older=True, out="(4, 4), nl.float32")  # fmt: skip
    x = RNG.integers(-99, 99, (3, 4)).astype(np.float32)
    theirs = np.zeros((4, 4))
    theirs[:3, :2] = x[1:, :3].T
    assert np.array_equal(result(kernel, (x, "bfloat16")), theirs)


def test_constants_come_from_arrays_and_files(tmp_path):
    kernel = write_kernel(tmp_path, f"""
matrix = nl.ndarray((4, 4), dtype=nl.float32, buffer=nl.sbuf)
nl.shared_identity_matrix(4, dtype=nl.float32, dst=matrix)
nisa.dma_copy(dst=out[0], src=matrix)
nisa.dma_copy(dst=out[1], src=nl.shared_constant({str(tmp_path / "numbers.npy")!r}))
nisa.dma_copy(dst=out[2], src=nl.shared_constant(3 * np.eye(4, dtype=np.uint8), dtype=nl.float32))
""", parameters="", out="(3, 4, 4), nl.float32")  # fmt: skip
    numbers = RNG.normal(size=(4, 4)).astype(np.float32)
    np.save(tmp_path / "numbers.npy", numbers)
    assert np.array_equal(result(kernel), np.stack([np.eye(4), numbers, 3 * np.eye(4)]))


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
