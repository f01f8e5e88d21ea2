"""Masked operands, bit casts, and single numbers as indices."""

import numpy as np
import pytest

from tests.frontends.nki.kernels import result, run_kernel, write_kernel

RNG = np.random.default_rng(77)


@pytest.mark.parametrize("rows, columns", [(4, 4), (3, 4), (4, 2), (1, 3)])
@pytest.mark.parametrize("cut", ["stationary", "moving"])
def test_a_product_is_of_what_a_mask_leaves(tmp_path, rows, columns, cut):
    parts = ["[(i < rows) & (j < columns)]" * (cut == name) for name in ("stationary", "moving")]
    kernel = write_kernel(tmp_path, f"""
a, b = nl.load(x), nl.load(y)
i, j = nl.mgrid[0:4, 0:4]
sums = nl.ndarray((4, 4), dtype=nl.float32, buffer=nl.psum)
for _ in range(2):
    sums[...] += nisa.nc_matmul(a[i, j]{parts[0]}, b[i, j]{parts[1]}, mask=j < columns)
into = (i < columns) if "{cut}" == "stationary" else (j < columns)
nl.store(out, value=nl.full((4, 4), -1.0, dtype=nl.float32))
nl.store(out[i, j], value=sums[i, j], mask=into)
""", older=True, parameters="x, y, rows, columns", out="(4, 4), nl.float32")  # fmt: skip
    x, y = (RNG.integers(-9, 9, (4, 4)).astype(np.float32) for _ in range(2))
    theirs = 2 * x[:rows].T @ y[:rows]
    if cut == "stationary":
        theirs[columns:] = -1
    else:
        theirs[:, columns:] = -1
    assert np.array_equal(result(kernel, x, y, rows, columns), theirs)


def test_masks_and_conditions_that_python_decides_cut_one_after_the_other(tmp_path):
    kernel = write_kernel(tmp_path, """
a, b = nl.load(x), nl.load(y)
i, j, k = nl.mgrid[0:4, 0:4, 0:4]
sums = nl.zeros((4, 4, 4), dtype=nl.float32, buffer=nl.psum)
left = a[nl.arange(4)[:, None], nl.arange(4)[None, :]][nl.arange(4)[None, :] < 3][n < 4]
sums[i, j, k] += nisa.nc_matmul(left, b[i, j, k][j >= 1][n < 4][j < n][k < 4])
sums[i, j, k] += nisa.nc_matmul(left, b[i, j, k][n > 4])
sums[i, j, k] += nisa.nc_matmul(left[nl.arange(4)[:, None] > 4], b[i, j, k])
""", older=True, parameters="x, y, n", out="(3, 2, 4), nl.float32", stores="sums[0:3, 1:3]")  # fmt: skip
    x, y = RNG.integers(-9, 9, (4, 4)).astype(np.float32), RNG.integers(-9, 9, (4, 4, 4)).astype(np.float32)
    theirs = np.einsum("km,kab->mab", x[:, :3], y[:, 1:3])
    assert np.array_equal(result(kernel, x, y, 3), theirs)


def test_what_a_mask_leaves_nothing_of_is_named_with_a_mask(tmp_path):
    body = """
out = nl.ndarray((4, 4), dtype=nl.float32, buffer=nl.shared_hbm)
zero = nl.load_transpose2d(x[0:4, 0:4][n > 4], mask=n > 4)
sums = nisa.nc_matmul(zero[n > 4], zero)
nl.store(out, value=zero + sums)
nl.store(out[3:7], value=zero[n > 4][n < 9], mask=n > 4)
return out
"""
    kernel = write_kernel(tmp_path, body, older=True, parameters="x, n")
    assert not result(kernel, np.ones((4, 4), np.float32), 3).any()
    kernel = write_kernel(
        tmp_path, body.replace("value=zero + sums", "value=zero[n > 4]"), older=True, parameters="x, n"
    )
    with pytest.raises(ValueError, match="an operand must have elements, but a mask excludes all of them"):
        result(kernel, np.ones((4, 4), np.float32), 3)


@pytest.mark.parametrize("form", ["nl.where(keys, tile, 0.5", "nl.where(keys, tile, other", "nl.where(keys, 0.5, tile"])
@pytest.mark.parametrize("columns, taken", [(6, 2), (8, 4), (5, 1)])
def test_a_masked_selection_beyond_the_end_is_written_where_the_mask_holds(tmp_path, form, columns, taken):
    kernel = write_kernel(tmp_path, f"""
held, tile, keys = nl.full((4, columns), -1.0, dtype=nl.float32), nl.load(x), nl.load(y)
other = tile * 2.0
j = nl.arange(4)[None, :]
held[:, 4:8] = {form}, mask=j + 4 < columns)
""", older=True, parameters="x, y, columns", out="(4, columns), nl.float32", stores="held")  # fmt: skip
    x, y = RNG.normal(size=(4, 4)).astype(np.float32), RNG.integers(0, 2, (4, 4)).astype(np.uint8)
    chosen = {"0.5": np.where(y, x, 0.5), "othe": np.where(y, x, 2 * x), "tile": np.where(y, 0.5, x)}
    theirs = np.full((4, columns), -1.0)
    theirs[:, 4:8] = chosen[form.split(", ")[-1][:4]][:, :taken]
    assert np.array_equal(result(kernel, x, y, columns), theirs)


def test_masks_that_python_decides_are_masks_of_every_function(tmp_path):
    kernel = write_kernel(tmp_path, """
tile, zero = nl.load(x), nl.zeros((4, 4), dtype=nl.float32)
for n, part in enumerate((tile, tile + 1.0)):
    nl.store(out[n], value=zero)
    nl.store(out[n], value=part, mask=n > 0)
nl.store(out[2], value=nl.load_transpose2d(x, mask=False))
nl.store(out[3], value=nl.where(tile, tile, 1.0, mask=np.bool_(True)))
nl.store(out[4], value=nl.where(tile, tile, tile, mask=np.bool_(False)))
""", older=True, out="(5, 4, 4), nl.float32")  # fmt: skip
    x = RNG.integers(1, 9, (4, 4)).astype(np.float32)
    assert np.array_equal(result(kernel, x), np.stack([0 * x, x + 1, 0 * x, x, 0 * x]))


def test_a_selection_may_be_written_over_what_it_selects_from(tmp_path):
    kernel = write_kernel(tmp_path, """
tile, keys = nl.load(x), nl.load(y)
tile[...] = nl.where(keys, tile, tile * 2.0)
""", older=True, parameters="x, y", out="(4, 4), nl.float32", stores="tile")  # fmt: skip
    x, y = RNG.normal(size=(4, 4)).astype(np.float32), RNG.integers(0, 2, (4, 4)).astype(np.uint8)
    assert np.array_equal(result(kernel, x, y), np.where(y, x, 2 * x))


@pytest.mark.parametrize("call", ["nisa.nc_transpose", "nl.transpose", "nisa.dma_transpose"])
@pytest.mark.parametrize("shape, part", [((4, 3), (2, 3)), ((4, 4), (3, 2)), ((2, 4), (2, 1))])
def test_the_mask_of_a_transposition_is_over_what_is_turned(tmp_path, call, shape, part):
    kernel = write_kernel(tmp_path, f"""
tile, turned = nl.load(x), nl.full({shape[::-1]}, -1.0, dtype=nl.float32)
i, j = nl.mgrid[0:{shape[0]}, 0:{shape[1]}]
p, q = nl.mgrid[0:{shape[1]}, 0:{shape[0]}]
turned[p, q] = {call}(tile[i, j], mask=(i < {part[0]}) & (j < {part[1]}))
""", older=True, out=f"{shape[::-1]}, nl.float32", stores="turned")  # fmt: skip
    x = RNG.integers(-9, 9, shape).astype(np.float32)
    theirs = np.full(shape[::-1], -1.0)
    theirs[: part[1], : part[0]] = x[: part[0], : part[1]].T
    assert np.array_equal(result(kernel, x), theirs)


@pytest.mark.parametrize("axis, keepdims", [(1, False), (2, False), (1, True), ((1, 2), False)])
def test_the_mask_of_a_reduction_is_over_what_it_reduces(tmp_path, axis, keepdims):
    x = RNG.integers(-9, 9, (4, 3, 3)).astype(np.float32)
    theirs = np.full_like(x.sum(axis, keepdims=keepdims), 99)
    cut = np.where(np.arange(3) < 2, x, 0)
    part = [slice(0, 3), slice(None), slice(0, 2)]
    for d in reversed(np.atleast_1d(axis)):
        part[d : d + 1] = [slice(None)] if keepdims else []
    theirs[tuple(part)] = cut.sum(axis, keepdims=keepdims)[tuple(part)]
    kernel = write_kernel(tmp_path, f"""
found = nl.full({theirs.shape}, 99.0, dtype=nl.float32)
i, j, k = nl.mgrid[0:4, 0:3, 0:3]
found[...] = nisa.tensor_reduce(np.add, nl.load(x), axis={axis}, keepdims={keepdims}, mask=(i < 3) & (k < 2))
""", older=True, out=f"{theirs.shape}, nl.float32", stores="found")  # fmt: skip
    assert np.array_equal(result(kernel, x), theirs)


@pytest.mark.parametrize(
    "given, seen", [("float32", "int8"), ("float32", "int16"), ("int32", "uint8"), ("int16", "int8")]
)
@pytest.mark.parametrize("shape", [(4, 1), (3, 6), (2, 2, 5)])
def test_a_view_of_fewer_bytes_has_more_elements(tmp_path, given, seen, shape):
    wide = (*shape[:-1], shape[-1] * np.dtype(given).itemsize // np.dtype(seen).itemsize)
    kernel = write_kernel(tmp_path, f"""
near, far, part = (nl.ndarray({wide}, dtype=nl.{seen}, buffer=nl.shared_hbm) for _ in range(3))
tile = nl.load(x)
nl.store(near, value=tile.view(nl.{seen}))
nisa.dma_copy(dst=far, src=x.view(nl.{seen}))
nl.store(part[1:2], value=tile[1:2].view(nl.{seen}))
return near, far, part
""", older=True)  # fmt: skip
    x = RNG.integers(-1000, 1000, shape).astype(given)
    theirs = x.view(seen).reshape(wide)
    near, far, part = run_kernel(kernel, x).outputs
    assert np.array_equal(near, theirs) and np.array_equal(far, theirs) and np.array_equal(part[1], theirs[1])


def test_one_number_is_one_index(tmp_path):
    kernel = write_kernel(tmp_path, """
place = nl.load(numbers[1])
assert place.shape == (1, 1)
row = nl.load(table[place])
assert row.shape == (1, 1)
nl.store(out[0:1], value=nl.load(x[nl.ds(row[0, 0], 1)]))
nl.store(out[1:2], value=nl.load(x[nl.ds(place, 1)]))
""", older=True, parameters="x, numbers, table", out="(2, 6), x.dtype")  # fmt: skip
    x, table = RNG.normal(size=(4, 6)).astype(np.float32), np.array([[2], [0], [3], [1]], np.int32)
    assert np.array_equal(result(kernel, x, np.array([3, 2], np.int32), table), x[[3, 2]])
