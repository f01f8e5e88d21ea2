"""Loops with dynamic bounds, registers, and addresses in registers."""

from pathlib import Path

import numpy as np
import pytest

from neuroncore_rtl.run.program import ProgramFailed
from tests.frontends.nki.kernels import FIRST, result, run_kernel, write_kernel

X = np.arange(128, dtype=np.float32).reshape(16, 8)

LOADED = """
count = nisa.register_alloc()
nisa.register_load(count, n)
"""

LIKE_X = "x.shape, x.dtype"

COUNTED = {
    "fori_loop": """
def body(i):
    nisa.dma_copy(dst=tile, src=x.ap([[8, 4], [1, 8]], scalar_offset=i))
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.add, operand0=2.0)
    nisa.dma_copy(dst=out.ap([[8, 4], [1, 8]], scalar_offset=i), src=tile)
tile = nl.ndarray((4, 8), dtype=x.dtype, buffer=nl.sbuf)
nl.fori_loop(4, count, body, step=4)
""",
    "dynamic_range": """
for i in nl.dynamic_range(4, count, 4):
    tile = nl.ndarray((4, 8), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x.ap([[8, 4], [1, 8]], scalar_offset=i, indirect_dim=0))
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.add, operand0=2.0)
    nisa.dma_copy(dst=out.ap([[8, 4], [1, 8]], scalar_offset=i, indirect_dim=0), src=tile)
""",
    "select": """
tiles, results = (one.reshape((4, 4, 8)) for one in (x, out))
last = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)
nisa.register_store(last, count)
nisa.tensor_scalar(dst=last, data=last, op0=nl.right_shift, operand0=2)
end = nisa.register_alloc()
nisa.register_load(end, last)
for i in nl.dynamic_range(1, end):
    tile = nl.load(tiles[i])
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.add, operand0=2.0)
    nisa.dma_copy(dst=results.select(0, i), src=tile)
""",
}

SUMMED = {
    "while_loop": """
def body(r):
    nisa.tensor_tensor(dst=total, data1=total, data2=tile, op=nl.add)
    nisa.tensor_tensor(dst=left, data1=left, data2=one, op=nl.subtract)
    nisa.register_load(r, left)
    return r
nl.while_loop(count, body)
""",
    "while_loop, of another register": """
def body(r):
    nisa.tensor_tensor(dst=total, data1=total, data2=tile, op=nl.add)
    nisa.register_store(left, r)
    nisa.tensor_scalar(left, left, nl.add, -1)
    following = nisa.register_alloc()
    nisa.register_load(following, left)
    return following
nl.while_loop(count, body)
""",
    "while": """
while count:
    nisa.tensor_tensor(dst=total, data1=total, data2=tile, op=nl.add)
    nisa.register_store(left, count)
    nisa.tensor_scalar(left, left, nl.add, -1)
    nisa.register_load(count, left)
""",
    "dynamic_range within while": """
rounds = nisa.register_alloc(1)
while rounds:
    for i in nl.dynamic_range(count):
        nisa.tensor_tensor(dst=total, data1=total, data2=tile, op=nl.add)
    nisa.register_move(rounds, 0)
""",
}


@pytest.mark.parametrize("count", [0, 4, 8, 16])
@pytest.mark.parametrize("form", COUNTED)
def test_a_loop_of_a_count_in_memory(tmp_path, form, count):
    kernel = write_kernel(tmp_path, LOADED + COUNTED[form], parameters="x, n", out=LIKE_X)
    expected = np.zeros_like(X)
    expected[4 : max(count, 4)] = X[4 : max(count, 4)] + 2
    assert (result(kernel, X, np.array([[count]], np.int32)) == expected).all()


@pytest.mark.parametrize("count", [0, 1, 5])
@pytest.mark.parametrize("form", SUMMED)
def test_a_loop_while_a_register_is_not_zero(tmp_path, form, count):
    before = """
total = nl.zeros((4, 8), dtype=nl.float32, buffer=nl.sbuf)
tile = nl.load(x)
left, one = nl.load(n), nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)
nisa.memset(one, value=1)
"""
    kernel = write_kernel(tmp_path, LOADED + before + SUMMED[form], parameters="x, n", out=LIKE_X, stores="total")
    assert (result(kernel, X[:4], np.array([[count]], np.int32)) == count * X[:4]).all()


def test_bounds_that_are_known_unroll(tmp_path):
    kernel = write_kernel(tmp_path, """
for i in nl.dynamic_range(4):
    tile = nl.ndarray((4, 8), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x.ap([[8, 4], [1, 8]], scalar_offset=4 * i))
    nisa.dma_copy(dst=out[4 * i : 4 * i + 4], src=tile)
""", out="x.shape, x.dtype")  # fmt: skip
    done = run_kernel(kernel, X)
    assert (done.outputs[0] == X).all() and done.run.program.flow.is_plain


def test_products_add_up_from_round_to_round(tmp_path):
    kernel = write_kernel(tmp_path, LOADED + """
sums = nl.zeros((4, 8), dtype=nl.float32, buffer=nl.psum)
row = nl.load(x[0:1])
start = nl.ndarray((4, 8), dtype=nl.float32, buffer=nl.sbuf)
nisa.memset(start, value=0.0)
nisa.tensor_tensor(dst=start, data1=start, data2=row.broadcast_to((4, 8)), op=nl.add)
for i in nl.dynamic_range(count):
    tile, turned = nl.load(x.reshape((4, 4, 8))[i][:, 0:4]), nl.ndarray((4, 4), dtype=nl.float32, buffer=nl.sbuf)
    nisa.nc_transpose(dst=turned, data=tile)
    moving = nl.ndarray((4, 8), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(moving, value=1.0)
    nisa.tensor_tensor(dst=moving, data1=moving, data2=row.broadcast_to((4, 8)), op=nl.add)
    nisa.nc_matmul(dst=sums, stationary=turned, moving=moving)
    nisa.tensor_scalar(dst=row, data=row, op0=nl.multiply, operand0=2.0)
final = nl.ndarray((4, 8), dtype=nl.float32, buffer=nl.sbuf)
nisa.tensor_tensor(dst=final, data1=start, data2=sums, op=nl.add)
nisa.tensor_tensor(dst=final, data1=final, data2=row.broadcast_to((4, 8)), op=nl.add)
first, turned = nl.load(x[0:4, 0:4]), nl.ndarray((4, 4), dtype=nl.float32, buffer=nl.sbuf)
nisa.nc_transpose(dst=turned, data=first)
nisa.tensor_tensor(dst=final[:, 0:4], data1=final[:, 0:4], data2=turned, op=nl.add)
""", parameters="x, n", out="(4, 8), nl.float32", stores="final")  # fmt: skip
    for count in (0, 1, 3):
        row, expected = X[0].astype(float), np.tile(X[0], (4, 1)).astype(float)
        for i in range(count):
            expected += X.reshape(4, 4, 8)[i][:, :4] @ np.tile(1 + row, (4, 1))
            row *= 2
        expected[:, :4] += X[:4, :4].T
        assert np.allclose(result(kernel, X, np.array([[count]], np.int32)), expected + row, rtol=1e-6)


def test_an_index_in_sbuf_is_a_place(tmp_path):
    kernel = write_kernel(tmp_path, """
index = nl.load(n)
tile = nl.load(x.reshape((4, 4, 8)).select(0, index))
""", parameters="x, n", out="(4, 8), x.dtype", stores="tile")  # fmt: skip
    assert (result(kernel, X, np.array([[2]], np.int32)) == X[8:12]).all()
    with pytest.raises(ProgramFailed, match=r"INDEX \(row 4\)"):
        result(kernel, X, np.array([[4]], np.int32))


def test_a_place_lies_within_its_tensor(tmp_path):
    kernel = write_kernel(tmp_path, """
register = nisa.register_alloc()
nisa.register_load(register, n)
""", parameters="x, n", out="(4, 8), x.dtype", stores="x.ap([[8, 4], [1, 8]], scalar_offset=register)")  # fmt: skip
    assert (result(kernel, X, np.array([[12]], np.int32)) == X[12:]).all()
    for beyond in (13, -1):
        with pytest.raises(ProgramFailed, match=rf"INDEX \(row {beyond & 0xFFFF_FFFF}\)"):
            result(kernel, X, np.array([[beyond]], np.int32))


def test_columns_and_transposed_rows_move_with_a_register(tmp_path):
    kernel = write_kernel(tmp_path, LOADED + """
for i in nl.dynamic_range(count):
    tile = nl.ndarray((4, 1), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x.ap([[8, 4], [1, 1]], scalar_offset=i, indirect_dim=1))
    nisa.dma_copy(dst=out[:, 0:8].select(1, i).expand_dim(1), src=tile)
    turned = nl.ndarray((4, 4), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=turned, src=x.ap([[1, 4], [8, 4]], scalar_offset=i))
    nisa.dma_copy(dst=out[:, 8:12], src=turned)
""", parameters="x, n", out="(4, 16), x.dtype")  # fmt: skip
    found = result(kernel, X, np.array([[5]], np.int32))
    assert (found[:, :5] == X[:4, :5]).all() and not found[:, 5:8].any()
    assert (found[:, 8:12] == X[4:8, :4].T).all()


ALLOCATED = "r = nisa.register_alloc(1)\n"
NOT_LEFT = "a loop on a register must end with its body"


@pytest.mark.parametrize(
    "lines, message",
    [
        ("if r:\n    pass", "a register's number .* cannot be a condition of Python: use nl.while_loop"),
        ("int(r)", "it cannot be a number of Python: nl.fori_loop and nl.dynamic_range take it as a bound"),
        ("range(r)", "it cannot be a number of Python"),
        ("nl.affine_range(r)", "a loop's bounds must be Python integers, except in nl.fori_loop"),
        ("r + 1", "it cannot be computed with: store it by nisa.register_store, compute in SBUF"),
        ("r == 1", "it cannot be compared: use nl.while_loop"),
        ("nl.ds(r, 4)", "a slice's start and size must be Python integers"),
        ("nisa.register_load(r, x)", r"must be loaded from, or stored to, a tensor of one element, not \(16, 8\)"),
        ("nisa.register_load(r, x[0:1, 0:1])", "the tensor of a register must be one integer, not .* fp32"),
        ("nisa.register_load(1, x[0:1, 0:1])", "dst must be a register of nisa.register_alloc, not 1"),
        ("nisa.register_move(r, nisa.register_alloc())", "a register must have a value before it is read"),
        ("nisa.register_move(r, 2.5)", "a register's value must be a 32-bit integer or a register, not 2.5"),
        ("nl.dynamic_range(0, r, r).__next__()", "a loop's step must be a constant integer of at least 1"),
        ("nl.fori_loop(0, 1.5, print)", "a loop's bounds must be integers or registers, not 1.5"),
        ("nl.fori_loop(0, r, lambda i: 3)", "the body of nl.fori_loop must return nothing"),
        ("nl.while_loop(r, lambda one: None)", "the result of nl.while_loop's body must be a register"),
        ("nisa.register_move(next(iter(nl.dynamic_range(r))), 3)", "the counter of a loop must not be written"),
        ("nl.load(x)[r]", "an index in memory must be along elements, not along dimension 0"),
        ("x.select(0, r).select(0, r)", "at most one index may be in memory"),
        ("nisa.dma_copy(dst=x[r], src=x.select(0, r))", "only one side of a copy may have an index in memory"),
        ("nisa.dma_copy(dst=nl.ndarray((1, 8), x.dtype), src=x[nisa.register_alloc()])", "must have a value before"),
        ("for i in nl.dynamic_range(r):\n    break", NOT_LEFT),
        ("for i in nl.dynamic_range(r):\n    return x", NOT_LEFT),
        ("while r:\n    break", NOT_LEFT),
        ("while r:\n    for i in nl.dynamic_range(r):\n        break", NOT_LEFT),
    ],
)  # fmt: skip
def test_refused_with_the_line(tmp_path, lines, message):
    kernel = write_kernel(tmp_path, f"{ALLOCATED}{lines}\nreturn x")
    x = X if "nl.load" not in lines else X[:4]
    with pytest.raises(ValueError, match=message) as refused:
        run_kernel(kernel, x)
    assert str(refused.value).endswith(f"(kernel.py:{FIRST + 1})")


@pytest.mark.parametrize(
    ("buffer", "step"),
    [
        ("psum", "nisa.nc_matmul(dst=sums, stationary=tile[:, 0:4], moving=tile)"),
        ("sbuf", "sums[...] = nl.loop_reduce(tile, op=nl.add, loop_indices=[i])"),
    ],
)
def test_sums_that_go_on_start_before_the_loop(tmp_path, buffer, step):
    kernel = write_kernel(tmp_path, f"""
{ALLOCATED}sums = nl.ndarray((4, 8), dtype=nl.float32, buffer=nl.{buffer})
tile = nl.load(x[0:4])
for i in nl.dynamic_range(r):
    {step}
return x
""")  # fmt: skip
    with pytest.raises(ValueError, match="sums carried from iteration to iteration must be written before the loop"):
        run_kernel(kernel, X)


def test_the_sum_of_a_loop_is_of_what_its_masks_leave(tmp_path):
    kernel = write_kernel(tmp_path, """
sums = nl.ndarray((4, 8), dtype=nl.float32, buffer=nl.sbuf)
p, f = nl.mgrid[0:4, 0:8]
for i in nl.affine_range(4):
    sums[p, f] = nl.loop_reduce(nl.load(x[4 * i + p, f]), op=nl.add, loop_indices=[i], mask=(p < 3) & (f >= i))
    sums[p, f] = nl.loop_reduce(nl.load(x[p, f]), op=nl.add, loop_indices=[i], mask=i > 3)
""", older=True, out="(4, 8), nl.float32", stores="sums")  # fmt: skip
    terms = X.reshape(4, 4, 8) * (np.arange(8) >= np.arange(4)[:, None, None])
    terms[:, 3] = 0
    assert np.array_equal(result(kernel, X), terms.sum(0))


@pytest.mark.slow
def test_a_loop_that_does_not_end_fails_with_its_line(tmp_path):
    kernel = write_kernel(tmp_path, f"""
{ALLOCATED}tile = nl.ndarray((1, 8), dtype=x.dtype, buffer=nl.sbuf)
while r:
    nisa.memset(tile, value=1.0)
return x
""")  # fmt: skip
    with pytest.raises(ProgramFailed, match=rf"all loops must end within 10,000 rounds .*\(kernel.py:{FIRST + 2}\)"):
        run_kernel(kernel, X)


def test_lines_of_a_body_are_the_kernels_own(tmp_path):
    kernel = write_kernel(tmp_path, LOADED + COUNTED["fori_loop"], parameters="x, n", out=LIKE_X)
    done = run_kernel(kernel, X, np.array([[16]], np.int32), on="model")
    counts = {line.number: cost.records for line, cost in done.run.lines.items()}
    text = Path(kernel.partition(":")[0]).read_text().splitlines()
    first = 1 + next(number for number, line in enumerate(text) if "def body" in line)
    assert [counts.get(number) for number in range(first, first + 4)] == [None, 3, 3, 3]


def test_on_the_rtl_as_on_golden(tmp_path):
    kernel = write_kernel(tmp_path, LOADED + """
scratch = nl.ndarray((4, 4), dtype=nl.float32, buffer=nl.sbuf)
left = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)
while count:
    nisa.register_store(left, count)
    nisa.tensor_scalar(left, left, nl.add, -1)
    nisa.register_load(count, left)
    nisa.dma_copy(dst=scratch, src=x.ap([[1, 4], [8, 4]], scalar_offset=count))
    nisa.dma_copy(dst=out.ap([[8, 4], [1, 4]], scalar_offset=count), src=scratch)
""", parameters="x, n", out=LIKE_X)  # fmt: skip
    done = run_kernel(kernel, X, np.array([[9]], np.int32), on="rtl")
    assert done.run.bit_exact
    expected = np.zeros_like(X)
    for place in reversed(range(9)):
        expected[place : place + 4, :4] = X[place : place + 4, :4].T
    assert (done.outputs[0] == expected).all()
    modelled = run_kernel(kernel, X, np.array([[9]], np.int32), on="model")
    assert modelled.run.cycles == pytest.approx(done.run.cycles, rel=0.02)


def test_a_body_runs_once_before_its_condition_is_asked(tmp_path):
    """The body computes the next condition in HBM and returns it, as in published kernels."""
    kernel = write_kernel(tmp_path, """
out = nl.ndarray((1, 8), dtype=nl.int32, buffer=nl.shared_hbm)
condition = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.hbm)
index = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.hbm)
nl.store(index[0, 0], value=0)
with do_while(condition):
    number = nl.load(index[0], dtype=nl.int32)
    nl.store(out[0, number], value=nl.add(number, 1))
    following = nl.add(number, 1)
    nl.store(index[0], following[0, 0])
    more = nl.load(x[following, 0])
    nl.store(condition[0], more[0, 0])
    return out
""", older=True)  # fmt: skip
    file = Path(kernel.partition(":")[0])
    file.write_text(f"from neuronxcc.nki._private.private_api import do_while\n{file.read_text()}")
    for count in (0, 1, 4):
        more = (np.arange(8) <= count).astype(np.int32)[:, np.newaxis]
        assert list(result(kernel, more)[0]) == [*range(1, count + 2), *(7 - count) * [0]]
