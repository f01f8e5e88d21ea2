"""Translation of calls: results against numpy, and numbers of instructions by kind."""

from collections import Counter

import numpy as np
import pytest

from neuroncore_rtl.frontends.nki.dialects.modules import CALLS
from neuroncore_rtl.frontends.nki.lowering.operators import ACTIVATIONS, OPERATOR_CALLS
from neuroncore_rtl.spec.functions import FUNCTIONS
from tests.frontends.nki.kernels import result, run_kernel, write_kernel

RNG = np.random.default_rng(5)
X = RNG.normal(size=(4, 24)).astype(np.float32)


def instructions(kernel, *args):
    run = run_kernel(kernel, *args)
    return Counter(entry.instruction.name for entry in run.run.program.entries), run


def test_a_call_is_an_instruction(tmp_path):
    kernel = write_kernel(tmp_path, """
a, b = nl.load(x), nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
nisa.tensor_scalar(dst=b, data=a, op0=np.multiply, operand0=2.0, op1=nl.add, operand1=1)
nisa.tensor_tensor(dst=a, data1=a, data2=b, op=nl.subtract)
nisa.activation(dst=b, op=nl.square, data=a, scale=0.5)
""", out="x.shape, x.dtype", stores="b")  # fmt: skip
    found, run = instructions(kernel, X)
    assert np.allclose(run.outputs[0], ((X - (2 * X + 1)) / 2) ** 2, rtol=1e-6)
    assert found == {"DMA_COPY": 2, "TENSOR_SCALAR": 1, "TENSOR_TENSOR": 1, "ACTIVATE": 1} and not run.inserted


def test_a_result_goes_where_it_is_assigned(tmp_path):
    kernel = write_kernel(tmp_path, """
tile = nl.ndarray(x.shape, dtype=x.dtype)
a = nl.load(x)
tile[:, 0:12] = nl.exp(a[:, 0:12])
kept = nisa.activation(op=np.tanh, data=a[:, 12:24])
tile[:, 12:24] = kept
""", older=True, out="x.shape, x.dtype", stores="tile")  # fmt: skip
    found, run = instructions(kernel, X)
    assert np.allclose(run.outputs[0], np.concatenate([np.exp(X[:, :12]), np.tanh(X[:, 12:])], 1), rtol=1e-5)
    assert found == {"DMA_COPY": 2, "ACTIVATE": 2}


def test_parts_of_a_result_are_read_where_it_was_assigned(tmp_path):
    kernel = write_kernel(tmp_path, """
a = nl.load(x)
tile = nl.ndarray((4, 3, 8), dtype=x.dtype)
kept = nl.exp(a[:, 4:12])
tile[:, 1, :] = kept
""", older=True, out="(4, 4), x.dtype", stores="kept[:, 2:6] + kept[:, 0:8:2]")  # fmt: skip
    found, run = instructions(kernel, X)
    powers = np.exp(X[:, 4:12])
    assert np.allclose(run.outputs[0], powers[:, 2:6] + powers[:, 0:8:2], rtol=1e-5)
    assert found == {"DMA_COPY": 2, "ACTIVATE": 1, "TENSOR_TENSOR": 1}


@pytest.mark.parametrize("fmt", ["float32", "bfloat16", "float16"])
def test_sums_in_psum_begin_with_the_first_product(tmp_path, fmt):
    kernel = write_kernel(tmp_path, """
tile = nl.load(x)
for again in range(10):  # more than PSUM has banks, so that one is taken again
    bank = nl.ndarray((4, 512), dtype=nl.float32, buffer=nl.psum)
    sums = bank[:, 0:8]
    for part in range(2):
        nisa.nc_matmul(dst=sums, stationary=tile[:, 4 * part : 4 * part + 4], moving=tile[:, 8:16])
    found = nl.ndarray((4, 8), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=found, src=sums)
""", out="(4, 8), nl.float32", stores="found")  # fmt: skip
    x = X.astype(np.float16).astype(np.float32) if fmt == "float16" else X
    error = np.abs(result(kernel, (x, fmt)) - (x[:, :4] + x[:, 4:8]).T @ x[:, 8:16]).max()
    assert error < {"float32": 1e-5, "bfloat16": 0.1, "float16": 1e-4}[fmt]


def test_what_the_machine_asks_for_is_inserted_and_counted(tmp_path):
    kernel = write_kernel(tmp_path, """
tile, row = nl.load(x), nl.load(x[0:1, 0:4])
sums = nisa.nc_matmul(tile[:, 1:5], tile[:, 8:12])
both = nisa.tensor_tensor(sums, sums, op=nl.add)
scaled = nisa.tensor_scalar(both, op0=nl.multiply, operand0=sums[:, 0:1])
""", older=True, out="(4, 4), nl.float32", stores="scaled + row.broadcast_to((4, 4))")  # fmt: skip
    _, run = instructions(kernel, X)
    sums = X[:, 1:5].T @ X[:, 8:12]
    assert np.allclose(run.outputs[0], 2 * sums * sums[:, :1] + X[:1, :4], atol=1e-5)
    assert run.inserted == {
        "operand of the tensor engine": 1, "second source in PSUM": 1, "scalar in PSUM": 1, "row to all partitions": 1,
    }  # fmt: skip


@pytest.mark.parametrize(("uses", "dtype", "copies"), [(1, "float32", 0), (3, "float32", 1), (1, "bfloat16", 1)])
def test_a_row_for_all_partitions_is_read_where_the_array_wrote_it(tmp_path, uses, dtype, copies):
    kernel = write_kernel(tmp_path, f"""
tile, row = nl.load(x), nl.load(x[0:1, 0:24])
for _ in range({uses}):
    tile = nisa.tensor_tensor(tile, row.broadcast_to((4, 24)), op=nl.add)
""", older=True, out="x.shape, x.dtype", stores="tile")  # fmt: skip
    x = np.round(X * 8)
    found, run = instructions(kernel, (x, dtype))
    assert np.array_equal(run.outputs[0].astype(np.float32), x + uses * x[:1])
    assert run.inserted == {"row to all partitions": 1} and found["TENSOR_TENSOR"] == uses
    assert found["ACTIVATE"] + found["TENSOR_COPY"] == copies


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8", "int32"])
def test_transpositions_keep_every_bit(tmp_path, dtype):
    kernel = write_kernel(tmp_path, """
turned, loaded, moved = (nl.ndarray((4, 4), dtype=x.dtype, buffer=nl.shared_hbm) for _ in range(3))
tile = nl.load(x)
nl.store(turned, value=nl.transpose(tile))
nl.store(loaded, value=nl.load_transpose2d(x))
p, f = nl.mgrid[0:4, 0:4]
nl.store(moved[f, p], value=tile[p, f])
return turned, loaded, moved
""", older=True)  # fmt: skip
    x = np.trunc(RNG.normal(size=(4, 4)) * 50).astype(np.float32)
    x[1, 2] = np.inf if "float" in dtype else 7
    for output in run_kernel(kernel, (x, dtype)).outputs:
        assert np.array_equal(output, x.T)


def test_masks_store_what_they_hold_for(tmp_path):
    kernel = write_kernel(tmp_path, """
p, f = nl.arange(4)[:, None], nl.arange(24)[None, :]
for first in nl.affine_range(3):
    tile = nl.load(x[4 * first + p, f], mask=4 * first + p < x.shape[0])
    nl.store(out[4 * first + p, f], value=tile * 3, mask=(4 * first + p < x.shape[0]) & (f < 20))
""", older=True, out="x.shape, x.dtype")  # fmt: skip
    x = RNG.normal(size=(9, 24)).astype(np.float32)
    expected = 3 * x
    expected[:, 20:] = 0
    assert np.array_equal(result(kernel, x), expected)


def test_a_grid_runs_its_programs_on_shared_tensors(tmp_path):
    kernel = write_kernel(tmp_path, """
i, j = nl.program_id(0), nl.program_id(1)
tile = nl.full((4, 2), 10 * i + j + nl.num_programs(1), dtype=nl.int32)
nl.store(out[i, j], value=tile)
""", older=True, parameters="", out="(2, 3, 4, 2), nl.int32")  # fmt: skip
    assert np.array_equal(result(kernel, grid=(2, 3))[..., 0, 0], [[3, 4, 5], [13, 14, 15]])


def test_every_operation_and_function_has_a_name_of_the_machine():
    assert set(ACTIVATIONS.values()) <= set(FUNCTIONS) and len(set(OPERATOR_CALLS.values())) == len(OPERATOR_CALLS)
    assert {"nc_matmul", "dma_copy", "activation", "tensor_reduce"} <= set(CALLS)


TILED = RNG.normal(size=(16, 20)).astype(np.float32)


def test_operands_and_sums_lie_in_any_quarter_of_the_array(tmp_path):
    kernel = write_kernel(tmp_path, """
sums = nl.ndarray((16, 8), dtype=nl.float32, buffer=nl.psum)
tile = nl.load(x)
for part in range(2):  # the second time they are added to
    for n in range(4):
        rows, columns = nl.ds(4 * (3 - n), 4), nl.ds(4 * n, 4)
        nisa.nc_matmul(
            dst=sums[columns, :], stationary=tile[rows, 0:4], moving=tile[rows, 4 + 8 * part : 12 + 8 * part],
            tile_position=(4 * (3 - n), 4 * n), tile_size=(4, 4),
        )
found = nl.ndarray((16, 8), dtype=nl.float32, buffer=nl.sbuf)
nisa.tensor_copy(dst=found, src=sums)
""", out="(16, 8), nl.float32", stores="found")  # fmt: skip
    run = run_kernel(kernel, (TILED, "bfloat16"), preset="small")
    parts = [TILED[4 * n : 4 * n + 4] for n in (3, 2, 1, 0)]
    expected = np.concatenate([part[:, :4].T @ (part[:, 4:12] + part[:, 12:20]) for part in parts])
    assert np.abs(run.outputs[0] - expected).max() < 0.2 and not run.inserted
    places = {(i.row, i.column) for i in (entry.instruction for entry in run.run.program.entries) if hasattr(i, "row")}
    assert places == {(12, 0), (8, 4), (4, 8), (0, 12)}


def test_tiles_of_the_array_keep_operands_where_they_are(tmp_path):
    kernel = write_kernel(tmp_path, """
for n in nl.affine_range(4):
    rows = nl.ds(4 * n, 4)
    g, h = nl.load(x[rows, 0:8]), nl.load(x[rows, 8:16])
    product = nisa.nc_matmul(g, h, tile_position=(n // 2 * 8, n % 2 * 8), tile_size=(8, 8))
    nl.store(out[n], value=product)
""", older=True, out="(4, 8, 8), nl.float32")  # fmt: skip
    run = run_kernel(kernel, TILED, preset="small")
    expected = [TILED[4 * n : 4 * n + 4, :8].T @ TILED[4 * n : 4 * n + 4, 8:16] for n in range(4)]
    assert np.abs(run.outputs[0] - expected).max() < 1e-5 and "operand of the tensor engine" not in run.inserted


@pytest.mark.parametrize(("place", "copies"), [("rows, 8:16", 0), ("0:4, 8:16", 1)])
def test_a_moving_operand_goes_to_the_partitions_of_the_stationary_one(tmp_path, place, copies):
    kernel = write_kernel(tmp_path, f"""
tile, rows = nl.load(x), nl.ds(8, 4)
nl.store(out, value=nisa.nc_matmul(tile[rows, 0:4], tile[{place}]))
""", older=True, out="(4, 8), nl.float32")  # fmt: skip
    run = run_kernel(kernel, TILED, preset="small")
    moving = TILED[8:12, 8:16] if not copies else TILED[:4, 8:16]
    assert np.abs(run.outputs[0] - TILED[8:12, :4].T @ moving).max() < 1e-5
    assert run.inserted["operand of the tensor engine"] == copies


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8"])
def test_what_is_transposed_starts_at_any_quarter(tmp_path, dtype):
    kernel = write_kernel(tmp_path, """
tile = nl.load(x)
turned = nl.ndarray((4, 16), dtype=x.dtype)
for n in range(4):
    turned[:, nl.ds(4 * n, 4)] = nisa.nc_transpose(tile[nl.ds(4 * n, 4), 4:8])
""", older=True, out="(4, 16), x.dtype", stores="turned")  # fmt: skip
    x = np.trunc(TILED * 40).astype(np.float32)
    run = run_kernel(kernel, (x, dtype), preset="small")
    assert np.array_equal(run.outputs[0], x[:, 4:8].T) and "operand of the tensor engine" not in run.inserted


@pytest.mark.parametrize("mode", ["nisa.matmul_perf_mode.double_row", "'double_row_gen3'"])
def test_double_rows_are_two_products(tmp_path, mode):
    kernel = write_kernel(tmp_path, f"""
a, b, sums = nl.load(x), nl.load(y), nl.ndarray((3, 5), dtype=nl.float32, buffer=nl.psum)
for _ in range(2):
    sums[...] += nisa.nc_matmul(a, b, perf_mode={mode})
""", older=True, parameters="x, y", out="(3, 5), nl.float32", stores="sums")  # fmt: skip
    x, y = (RNG.integers(-8, 9, (4, 2, columns)).astype(np.float32) for columns in (3, 5))
    found = result(kernel, (x, "float8_e4m3"), (y, "float8_e5m2"))
    assert np.array_equal(found, 2 * np.einsum("kri,krj->ij", x, y))
    with pytest.raises(ValueError, match=r"double rows must have .* not \(4, 3\) and \(4, 5\)"):
        result(kernel, (x[:, 0], "float8_e4m3"), (y[:, 0], "float8_e5m2"))


@pytest.mark.parametrize("column", ("b[:, 1]", "b[:, 1:2]"))
@pytest.mark.parametrize("order", ("{0}, {1}", "{1}, {0}"))
def test_one_element_of_each_partition_goes_with_all_of_theirs(tmp_path, column, order):
    older = write_kernel(tmp_path, f"""
a, b = nl.load(x).reshape((4, 3, 8)), nl.load(y)
nl.store(out, value=nisa.tensor_tensor({order.format("a", column)}, op=nl.subtract))
""", older=True, parameters="x, y", out="(4, 3, 8), x.dtype")  # fmt: skip
    y = RNG.normal(size=(4, 4)).astype(np.float32)
    expected = X.reshape(4, 3, 8) - y[:, 1, None, None]
    if order == "{1}, {0}":
        expected = -expected
    assert np.array_equal(result(older, X, y), expected)
    newer = write_kernel(tmp_path, f"""
a, b = nl.load(x.reshape((4, 3, 8))), nl.load(y)
first, second = {order.format("a", column)}
nisa.tensor_tensor(dst=a, data1=first, data2=second, op=nl.subtract)
""", parameters="x, y", out="(4, 3, 8), x.dtype", stores="a")  # fmt: skip
    assert np.array_equal(result(newer, X, y), expected)


def test_bits_of_another_type_are_read_where_they_are(tmp_path):
    kernel = write_kernel(tmp_path, """
tile = nl.load(x)
nisa.dma_copy(dst=out[:, 0], src=x.view(nl.uint8)[:, 8:16])
nisa.dma_copy(dst=out[:, 1], src=tile.ap([[96, 4], [1, 8]], offset=8, dtype=nl.uint8))
nisa.dma_copy(dst=out[:, 2], src=x.ap([[96, 4], [1, 8]], offset=8, dtype=nl.uint8))
nisa.dma_copy(dst=out[:, 3], src=tile.view(nl.uint8).ap([[96, 4], [1, 8]], offset=8))
""", out="(4, 4, 8), nl.uint8")  # fmt: skip
    expected = X.view(np.uint8)[:, np.newaxis, 8:16]
    assert (result(kernel, X).astype(np.uint8) == expected).all()
    refused = write_kernel(tmp_path, "return x.ap([[3, 4], [1, 3]], offset=1, dtype=nl.float32)", parameters="x")
    with pytest.raises(ValueError, match="ap of another type must be .* whole elements of it, not float32 for uint8"):
        run_kernel(refused, np.zeros((4, 18), np.uint8))


def test_an_argument_is_compared_with_none(tmp_path):
    kernel = write_kernel(tmp_path, """
assert x != None and not x == None and bias == None and not bias != None
tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
assert tile != None
nisa.dma_copy(dst=tile, src=x)
""", parameters="x, bias=None", stores="tile")  # fmt: skip
    assert np.array_equal(result(kernel, X), X)


@pytest.mark.parametrize("older", (True, False))
def test_an_identity_matrix_is_an_operand(tmp_path, older):
    add = "nisa.tensor_tensor(dst=tile, data1=matrix, data2=matrix, op=nl.add)"
    kernel = write_kernel(tmp_path, f"""
matrix = nl.shared_identity_matrix(4, dtype=nl.float32)
tile = nl.ndarray((4, 4), dtype=nl.float32, buffer=nl.sbuf)
{"tile[...] = nl.load(matrix) + nl.load(matrix)" if older else add}
""", older=older, stores="tile")  # fmt: skip
    assert np.array_equal(result(kernel, X), 2 * np.eye(4))


def test_a_copy_of_more_elements_than_a_record_counts(tmp_path):
    kernel = write_kernel(tmp_path, "", out="x.shape, x.dtype", stores="x")
    x = np.arange(70_001, dtype=np.int32).reshape(1, -1)
    assert np.array_equal(result(kernel, x), x)


@pytest.mark.parametrize("op", ("np.max", "nl.minimum", "nl.add"))
def test_the_reduction_of_terms_over_loops(tmp_path, op):
    kernel = write_kernel(tmp_path, f"""
most = nl.ndarray((2, nl.par_dim(4), 4), dtype=x.dtype)
for i in nl.affine_range(2):
    for j in nl.affine_range(3):
        for k in nl.affine_range(2):
            term = nl.load(x[:, 4 * (j + 3 * k):4 * (j + 3 * k) + 4]) * (i + 1)
            most[i] = nl.loop_reduce(term, op={op}, loop_indices=[j, k])
    nl.store(out[i], value=most[i])
""", older=True, out="(2, 4, 4), x.dtype")  # fmt: skip
    x = np.round(8 * X)
    reduced = {"np.max": np.max, "nl.minimum": np.min, "nl.add": np.sum}[op](x.reshape(4, 6, 4), 1)
    assert np.array_equal(result(kernel, x), np.stack([reduced, 2 * reduced]))


@pytest.mark.parametrize("loop", ["range(1, 5)", "range(4, 0, -1)", "range(2, 9, 2)", "(7, 3, 0)"])
@pytest.mark.parametrize("op", ["np.max", "nl.add"])
def test_a_reduction_over_a_loop_starts_again_in_each_outer_iteration(tmp_path, op, loop):
    kernel = write_kernel(tmp_path, f"""
tile = nl.ndarray((nl.par_dim(4), 4), dtype=x.dtype)
a = nl.load(x)
for i in range(2):
    for j in {loop}:
        tile[...] = nl.loop_reduce(a[:, j : j + 4] * (1 - 3 * i), op={op}, loop_indices=[j])
    nl.store(out[i], value=tile)
""", older=True, out="(2, 4, 4), x.dtype")  # fmt: skip
    terms = np.stack([X[:, j : j + 4] for j in eval(loop)])
    reduced = [(terms * np.float32(factor)).max(0) if op == "np.max" else (terms * factor).sum(0) for factor in (1, -2)]
    assert np.allclose(result(kernel, X), np.stack(reduced), rtol=1e-6)


def test_a_maximum_over_a_loop_of_the_run_is_refused(tmp_path):
    kernel = write_kernel(tmp_path, """
r, tile = nisa.register_alloc(), nl.ndarray((4, 4), dtype=x.dtype)
nisa.register_move(r, 3)
for i in nl.dynamic_range(r):
    tile[...] = nl.loop_reduce(nl.load(x[:, 0:4]), op=np.max, loop_indices=[i])
return x
""", older=True)  # fmt: skip
    with pytest.raises(ValueError, match="loop_indices of max or min must be integers, of loops with known bounds"):
        result(kernel, X)


@pytest.mark.parametrize("target", ["golden", "rtl"])
@pytest.mark.parametrize(("dtype", "ones"), [("float32", False), ("float32", True), ("bfloat16", False)])
def test_a_transposing_product_is_a_product_with_its_moving_operand(tmp_path, dtype, ones, target):
    kernel = write_kernel(tmp_path, f"""
a, b = nl.load(x), nl.load(y)
sums, more = (nl.ndarray((4, 3), dtype=nl.float32, buffer=nl.psum) for _ in range(2))
for _ in range(2):
    nisa.nc_matmul(dst=sums, stationary=a, moving=b, is_transpose=True, is_moving_onezero={ones})
    nisa.nc_matmul(dst=more, stationary=a, moving=b, is_transpose=True, is_moving_onezero={ones}, accumulate=True)
once, twice = nl.copy(sums), nl.copy(more)
""", parameters="x, y", stores="once, twice")  # fmt: skip
    rng = np.random.default_rng(3)
    x, y = (rng.integers(-60, 60, shape).astype(np.float32) for shape in ((4, 4), (4, 3)))
    if ones:
        y = np.eye(4, 3, dtype=np.float32)
        x += rng.normal(size=(4, 4)).astype(np.float32)
        x[2, 1] = np.inf
        expected = x.T[:, :3]
    else:
        expected = x.T @ y
    found = run_kernel(kernel, (x, dtype), (y, dtype), on=target).outputs
    assert np.array_equal(found[0], expected) and np.allclose(found[1], 2 * expected, rtol=1e-6)


def test_empty_slices_are_copied_but_not_computed_with(tmp_path):
    kernel = write_kernel(tmp_path, """
a = nl.load(x)
for rows in (slice(0, 4), slice(4, 4)):
    tile = nl.load(x[rows])
    nl.store(out[rows], value=tile)
    a[:, 3:3] = 7.0
    a[:, 3:3] = a[:, 0:0]
    nl.store(out[0:0], value=1.0)
    nl.copy(tile[:, 0:0])
""", older=True, out="x.shape, x.dtype")  # fmt: skip
    assert np.array_equal(result(kernel, X), X)
    for expression in ("nl.load(x[4:4]) + 1", "nl.sum(nl.load(x)[:, 0:0], axis=1)", "nl.exp(nl.load(x[0:0]))"):
        with pytest.raises(ValueError, match=r"an operand must have elements, not shape \(.*kernel.py"):
            result(write_kernel(tmp_path, f"y = {expression}\nreturn x", older=True), X)


@pytest.mark.parametrize(
    ("shape", "dtype"), [((3, 5), "float32"), ((4099, 3), "int32"), ((7,), "uint8"), ((1,), "int8")]
)
def test_a_tensor_of_hbm_is_filled(tmp_path, shape, dtype):
    kernel = write_kernel(tmp_path, f"""
kinds = dict(shape={shape}, dtype=nl.{dtype}, buffer=nl.shared_hbm)
return nl.zeros(**kinds), nl.full(fill_value=3, **kinds), nl.ones(**kinds)
""")  # fmt: skip
    found = run_kernel(kernel, X).outputs
    assert all(np.array_equal(one, np.full(shape, value, dtype)) for one, value in zip(found, (0, 3, 1), strict=True))


def test_programs_of_a_grid_fill_a_shared_tensor_once(tmp_path):
    kernel = write_kernel(tmp_path, """
out = nl.zeros((4, 4), dtype=x.dtype, buffer=nl.shared_hbm)
row = nl.program_id(0)
nl.store(out[row : row + 1], value=nl.load(x[row : row + 1, 0:4]))
return out
""", older=True)  # fmt: skip
    found = run_kernel(kernel, X, grid=3).outputs[0]
    assert np.array_equal(found[:3], X[:3, :4]) and not found[3].any()


def test_an_index_may_be_the_range_of_a_loop(tmp_path):
    kernel = write_kernel(tmp_path, """
rows, columns = nl.affine_range(4), nl.affine_range(6, 24, 3)
nl.store(out[rows, nl.affine_range(6)], value=nl.load(x[rows, columns]))
""", out="(4, 6), x.dtype")  # fmt: skip
    assert np.array_equal(result(kernel, X), X[:, 6:24:3])
