"""Indices in memory: rows of HBM, and elements on chip."""

from collections import Counter

import ml_dtypes
import numpy as np
import pytest

from neuroncore_rtl.spec.isa import DmaCopy
from tests.frontends.nki.kernels import result, run_kernel, store_kernel, write_kernel

RNG = np.random.default_rng(8)
TABLE = RNG.normal(size=(9, 30)).astype(np.float32)
ROWS = np.array([[7], [0], [3], [8]], np.int32)
SOME = np.array([[2], [-1], [9], [5]], np.int32)


def copies(kernel, *args, **options):
    done = run_kernel(kernel, *args, **options)
    moved = [entry.instruction for entry in done.run.program.entries if isinstance(entry.instruction, DmaCopy)]
    return done.outputs, [one for one in moved if one.gather or one.scatter], done.inserted


@pytest.mark.parametrize("index", ["t", "t[i_p, 0]", "nl.copy(t)", "t[0:4]"])
def test_a_tile_is_an_index_of_the_first_dialect(tmp_path, index):
    kernel = write_kernel(tmp_path, """
i_p, i_f = nl.arange(4)[:, None], nl.arange(30)[None, :]
t = nl.load(rows)
""", older=True, parameters="x, rows", out="(4, 30), x.dtype", stores=f"nl.load(x[{index}, i_f])")  # fmt: skip
    (found,), (gather,), inserted = copies(kernel, TABLE, ROWS)
    assert np.array_equal(found, TABLE[ROWS[:, 0]]) and not inserted
    assert gather.shape == (4, 30) and gather.gather.limit == 9 and not gather.gather.skip


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "uint8", "uint16", "uint32"])
def test_indices_are_of_any_integers(tmp_path, dtype):
    """32-bit indices are used directly, others are copied to 32 bits; a large unsigned index is out of range."""
    kernel = write_kernel(tmp_path, """
i_f, t = nl.arange(30)[None, :], nl.load(rows)
tile = nl.full((4, 30), 3, dtype=x.dtype)
tile[...] = nl.load(x[t, i_f], mode=nisa.oob_mode.skip)
nl.store(out[0], value=tile)
nl.store(out[1, 0:4, 0:1], value=nisa.nc_n_gather(data=nl.load(x[0:4]), indices=nl.load(places)))
""", older=True, parameters="x, rows, places", out="(2, 4, 30), x.dtype")  # fmt: skip
    top = np.iinfo(dtype).max
    (found,), _, inserted = copies(kernel, TABLE, (np.array([[7], [top], [0], [8]]), dtype), (ROWS, dtype))
    expected = np.full((4, 30), 3, np.float32)
    expected[[0, 2, 3]] = TABLE[[7, 0, 8]]
    assert np.array_equal(found[0], expected)
    assert np.array_equal(found[1, :, 0], TABLE[np.arange(4), ROWS[:, 0]])
    assert inserted["row numbers of 32 bits in SBUF"] == ("32" not in dtype)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8"])
@pytest.mark.parametrize("where", ["", ", mode=nisa.oob_mode.skip"])
def test_stores_by_rows(tmp_path, where, dtype):
    """The last store to a row number stays. Some stores write parts of rows, or rows of two dimensions."""
    kernel = write_kernel(tmp_path, f"""
i_p, i_a, i_b = nl.arange(4)[:, None, None], nl.arange(5)[None, :, None], nl.arange(3)[None, None, :]
tile, t = nl.load(x[0:4]).reshape((4, 5, 6)), nl.load(rows)
nl.store(out[1, t[i_p, 0], i_a, 2 + i_b], value=tile[i_p, i_a, 3 + i_b]{where})
""", older=True, parameters="x, rows", out="(2, 9, 5, 6), x.dtype")  # fmt: skip
    table = np.round(8 * TABLE)
    rows = SOME if where else np.array([[3], [0], [3], [8]], np.int32)
    found = result(kernel, (table, dtype), rows)
    expected = np.zeros((2, 9, 5, 6))
    for row, tile in zip(rows[:, 0], table[:4].reshape(4, 5, 6), strict=True):
        if 0 <= row < 9:
            expected[1, row, :, 2:5] = tile[:, 3:6]
    assert np.array_equal(found, expected)


def test_rows_that_are_skipped_stay_as_they_are(tmp_path):
    kernel = write_kernel(tmp_path, """
i_p, i_f = nl.arange(4)[:, None], nl.arange(30)[None, :]
t = nl.load(rows)
kept = nl.full((4, 30), 7, dtype=nl.bfloat16)
kept[i_p, i_f] = nl.load(x[t, i_f], mode=nisa.oob_mode.skip)
blocks = nl.ndarray((2, nl.par_dim(4), 30), dtype=x.dtype)
for n in range(2):
    blocks[n, i_p, i_f] = nl.load(x[t, i_f], mode=nisa.oob_mode.skip)
nl.store(out[0], value=nl.load(x[t, i_f], mode=nisa.oob_mode.skip))
nl.store(out[1], value=kept)
nl.store(out[2], value=blocks[0])
nl.store(out[3], value=blocks[1])
""", older=True, parameters="x, rows", out="(4, 4, 30), x.dtype")  # fmt: skip
    table = np.round(8 * TABLE)
    (found,), _, inserted = copies(kernel, table, SOME)
    expected = np.zeros((4, 30))
    expected[[0, 3]] = table[[2, 5]]
    assert all(np.array_equal(found[n], expected) for n in (0, 2, 3))
    expected[[1, 2]] = 7
    assert np.array_equal(found[1], expected)
    assert inserted == Counter({"zeros behind skipped rows": 3, "copy before a store": 1})


@pytest.mark.parametrize("key, wanted", [
    ("n[0, 0], i_p, i_f", lambda x, n: x[n, :4, :5]),
    ("i_p, n[0, 0], i_f", lambda x, n: x[:4, n, :5]),
    ("i_p, i_f, n[0, 0]", lambda x, n: x[:4, :5, n]),
    ("0:4, n[0, 0], 0:5", lambda x, n: x[:4, n, :5]),
    ("2, nl.ds(n, 4), 0:5", lambda x, n: x[2, n : n + 4, :5]),
    ("2, n[0, 0] + i_p, i_f", lambda x, n: x[2, n : n + 4, :5]),
    ("2, i_p + n, 1 + i_f", lambda x, n: x[2, n : n + 4, 1:6]),
    ("1, 2 * i_p, n[0, 0] + i_f", lambda x, n: x[1, 0:8:2, n : n + 5]),
])  # fmt: skip
def test_a_number_is_an_index_of_any_dimension(tmp_path, key, wanted):
    kernel = write_kernel(tmp_path, f"""
i_p, i_f = nl.arange(4)[:, None], nl.arange(5)[None, :]
n = nl.load(number)
tile = nl.load(x[{key}])
""", older=True, parameters="x, number", out="(4, 5), x.dtype", stores="tile")  # fmt: skip
    x = RNG.normal(size=(6, 9, 8)).astype(np.float32)
    assert np.array_equal(result(kernel, x, np.array([[3]], np.int32)), wanted(x, 3))


def test_masks_and_several_numbers_of_a_partition(tmp_path):
    kernel = write_kernel(tmp_path, """
i_p, i_f = nl.arange(4)[:, None], nl.arange(30)[None, :]
t = nl.load(rows)
nl.store(out[0], value=nl.load(x[t[i_p, 1], i_f], mask=(i_p < 3) & (i_f >= 10)))
i_p, i_c, i_f = nl.arange(4)[:, None, None], nl.arange(3)[None, :, None], nl.arange(10)[None, None, :]
nl.store(out[1].reshape((4, 3, 10)), value=nl.load(x[t[i_p, i_c], 20 + i_f]))
""", older=True, parameters="x, rows", out="(2, 4, 30), x.dtype")  # fmt: skip
    rows = RNG.integers(0, 9, (4, 3)).astype(np.int32)
    (found,), gathers, _ = copies(kernel, TABLE, rows)
    expected = np.zeros((4, 30), np.float32)
    expected[:3, 10:] = TABLE[rows[:3, 1], 10:]
    assert np.array_equal(found[0], expected) and np.array_equal(found[1], TABLE[rows, 20:].reshape(4, 30))
    assert len(gathers) == 1 + 3


def test_long_rows_are_shared_by_engines(tmp_path):
    """Gathers are split by rows and columns, scatters only by columns, so that the last of equal row numbers wins."""
    kernel = write_kernel(tmp_path, """
out, back = (nl.ndarray(shape, dtype=x.dtype, buffer=nl.shared_hbm) for shape in ((64, 700), x.shape))
i_p, i_f = nl.arange(64)[:, None], nl.arange(700)[None, :]
t = nl.load(rows)
tile = nl.load(x[t[64 + i_p, 0], i_f])
nl.store(out, value=tile)
nl.store(back[t[i_p, 0], i_f], value=tile, mode=nisa.oob_mode.skip)
return out, back
""", older=True, parameters="x, rows")  # fmt: skip
    x, rows = RNG.normal(size=(90, 700)).astype(np.float32), RNG.integers(0, 90, (128, 1)).astype(np.int32)
    rows[:3, 0] = 90, rows[4, 0], -1
    done = run_kernel(kernel, x, rows, preset="full")
    expected = np.zeros_like(x)
    for row, chosen in zip(rows[:64, 0], rows[64:, 0], strict=True):
        if 0 <= row < 90:
            expected[row] = x[chosen]
    assert np.array_equal(done.outputs[0], x[rows[64:, 0]]) and np.array_equal(done.outputs[1], expected)
    moved = [entry.instruction for entry in done.run.program.entries if isinstance(entry.instruction, DmaCopy)]
    gathers, scatters = ([one for one in moved if getattr(one, name)] for name in ("gather", "scatter"))
    assert len({one.gather.partition for one in gathers}) > 1 and {one.shape[0] for one in scatters} == {64}
    assert len(gathers) > len(scatters) > 1


def test_a_mask_is_an_index(tmp_path):
    kernel = write_kernel(tmp_path, """
i_p, i_f = nl.arange(4)[:, None], nl.arange(8)[None, :]
tile = nl.load(x[0:4])
for first in range(0, 30, 8):
    column = first + i_f
    nl.store(out[i_p, column][column < 30], value=nl.copy(tile[i_p, column][column < 30]))
""", older=True, out="(4, 30), x.dtype")  # fmt: skip
    assert np.array_equal(result(kernel, TABLE), TABLE[:4])


@pytest.mark.parametrize("op", ["add", "maximum"])
@pytest.mark.parametrize(
    "how", ["nl.atomic_rmw(out[t, i_f], tile, op=np.{})", "nisa.dma_copy(dst=out[t, i_f], src=tile, dst_rmw_op=np.{})"]
)
def test_rows_are_read_modified_and_written(tmp_path, how, op):
    kernel = write_kernel(tmp_path, f"""
i_f = nl.arange(30)[None, :]
for first in (0, 4, 8):
    nl.store(out[first : min(first + 4, 9)], value=nl.load(x[first : min(first + 4, 9)]))
tile, t = nl.load(x[0:4]), nl.load(rows)
{how.format(op)}
""", older=True, parameters="x, rows", out="(9, 30), x.dtype")  # fmt: skip
    expected = TABLE.copy()
    getattr(np, op).at(expected, ROWS[:, 0], TABLE[:4])
    assert np.array_equal(result(kernel, TABLE, ROWS), expected)


def test_sums_of_rows_by_numbers(tmp_path):
    """`dma_compute` adds to indexed rows of HBM, to SBUF, and without indices; a sum of three rows is rounded once."""
    kernel = write_kernel(tmp_path, """
out, near, plain = (nl.ndarray(shape, dtype=x.dtype, buffer=nl.shared_hbm) for shape in ((9, 30), (4, 30), (4, 30)))
tile, other = (nl.ndarray((4, 30), dtype=x.dtype, buffer=nl.sbuf) for _ in range(2))
t = nl.load(numbers)
nisa.dma_copy(dst=out, src=x)
for each in (tile, other):
    nisa.dma_copy(dst=each, src=x[0:4])
rows = out.ap([[30, 4], [1, 30]], vector_offset=t)
nisa.dma_compute(dst=rows, srcs=[rows, tile], reduce_op=nl.add, oob_mode=nisa.oob_mode.skip)
nisa.dma_compute(dst=tile, srcs=[x.vector_select(0, t), tile], reduce_op=nl.add, oob_mode=nisa.oob_mode.skip)
nisa.dma_copy(dst=near, src=tile)
nisa.dma_compute(dst=plain, srcs=[x[1:5], other, x[5:9]], reduce_op=nl.add)
return out, near, plain
""", parameters="x, numbers")  # fmt: skip
    table = bf16(TABLE)
    (out, near, plain), _, inserted = copies(kernel, (table, "bfloat16"), SOME)
    for row, term in zip(SOME[:, 0], range(4), strict=True):
        if 0 <= row < 9:
            assert np.array_equal(out[row], bf16(table[row] + table[term]))
        assert np.array_equal(near[term], bf16(table[term] + (table[row] if 0 <= row < 9 else 0)))
    assert np.array_equal(out[[0, 1, 3, 4, 6, 7, 8]], table[[0, 1, 3, 4, 6, 7, 8]])
    assert np.array_equal(plain, bf16((table[1:5] + table[:4]) + table[5:9]))
    assert inserted["copy to combine"] == 4


def bf16(x):
    return x.astype(ml_dtypes.bfloat16).astype(np.float32)


def test_access_patterns_with_offsets_in_memory(tmp_path):
    """A row number is multiplied by the tensor's step and compared with the tensor's limit, not the pattern's."""
    kernel = write_kernel(tmp_path, """
rows, few, block, one, cut = (nl.ndarray(shape, dtype=x.dtype, buffer=nl.shared_hbm)
                              for shape in ((9, 30), (4, 3), (4, 6), (30,), (4, 6, 3)))
t, n = nl.load(numbers), nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)
nisa.dma_copy(dst=n, src=numbers[2:3])
tile, part = nl.ndarray((4, 30), dtype=x.dtype, buffer=nl.sbuf), nl.ndarray((4, 6), dtype=x.dtype, buffer=nl.sbuf)
whole = x.ap(pattern=[[30, 4], [1, 30]], vector_offset=t, indirect_dim=0)
assert whole.is_indirect() and whole.shape == (4, 30) and not x.is_indirect()
nisa.dma_copy(dst=tile, src=whole)
nisa.dma_copy(dst=rows.ap([[30, 4], [1, 30]], vector_offset=t), src=tile)
nisa.dma_copy(dst=few, src=x.ap([[0, 4], [2, 3]], 5, vector_offset=t))
nisa.dma_copy(dst=part, src=x.ap([[30, 4], [1, 6]], 1, scalar_offset=n, indirect_dim=0))
nisa.dma_copy(dst=block, src=part)
nisa.dma_copy(dst=one, src=x.select(0, n))
nisa.dma_copy(dst=cut, src=x.vector_select(0, t).reshape_dim(1, (5, 6)).permute((0, 2, 1)).slice(2, 1, 4))
return rows, few, block, one, cut
""", parameters="x, numbers")  # fmt: skip
    (rows, few, block, one, part), found, _ = copies(kernel, TABLE, ROWS)
    chosen = ROWS[:, 0]
    expected = np.zeros_like(TABLE)
    expected[chosen] = TABLE[chosen]
    assert np.array_equal(rows, expected) and np.array_equal(few, TABLE[chosen][:, 5:10:2])
    assert np.array_equal(block, TABLE[3:7, 1:7]) and np.array_equal(one, TABLE[3])
    assert np.array_equal(part, TABLE[chosen].reshape(4, 5, 6).swapaxes(1, 2)[:, :, 1:4])
    # The last element that a pattern reaches must be inside the tensor. The third pattern reaches the fourth row after
    # the row number.
    assert [(copy.gather or copy.scatter).limit for copy in found] == [9, 9, 9, 6, 9, 9]


@pytest.mark.parametrize("width, count", [(1, None), (2, 48), (4, 41), (8, 1)])
def test_groups_of_partitions_gather_by_their_numbers(tmp_path, width, count):
    shape = (32, count or 48, width)
    kernel = write_kernel(tmp_path, f"""
a, i = nl.load(x), nl.load(indices)
found = nl.ndarray({shape}, dtype=x.dtype, buffer=nl.sbuf)
nisa.local_gather(dst=found, src_buffer=a, index=i, num_elem_per_idx={width}, num_valid_indices={count})
""", parameters="x, indices", out=f"{shape}, x.dtype", stores="found")  # fmt: skip
    x, indices = RNG.normal(size=(32, 40)).astype(np.float32), RNG.integers(0, 33, (32, 3)).astype(np.int16)
    found = result(kernel, x, indices, preset="medium")
    for group in (slice(0, 16), slice(16, 32)):
        numbers = indices[group].flatten(order="F")[:count]
        assert np.array_equal(found[group], np.stack([x[group][:, numbers + k] for k in range(width)], -1))


def test_a_table_is_made_once_while_it_stays_as_it_is(tmp_path):
    kernel = write_kernel(tmp_path, """
a, n = nl.load(x), nl.load(places)
tile = nl.ndarray((4, 8), dtype=x.dtype)
p, f = nl.mgrid[0:4, 0:2]
for k in range(4):
    tile[p, 2 * k + f] = nl.copy(a[p, n[0, k] + f]) if k % 2 else nisa.tensor_copy_dynamic_src(a[p, n[0, k] + f])
""", older=True, parameters="x, places", out="(4, 8), x.dtype", stores="tile")  # fmt: skip
    places = np.array([[4, 28, 0, 7]], np.int32)
    (found,), gathers, inserted = copies(kernel, TABLE[:4], places)
    assert np.array_equal(found, np.concatenate([TABLE[:4, n : n + 2] for n in places[0]], 1))
    assert len(gathers) == 4 and inserted == {"copy to HBM, to be indexed": 1}


def test_a_known_offset_keeps_partition_and_rows(tmp_path):
    """A `scalar_offset` known as an integer counts from the view's start; a `vector_offset` may be added to it."""
    kernel = write_kernel(tmp_path, """
part, rows = (nl.ndarray((n, 3), dtype=x.dtype, buffer=nl.sbuf) for n in (2, 4))
tile, t = nl.load(x[0:4]), nl.load(numbers)
nisa.dma_copy(dst=part, src=tile[2:4].ap([[30, 2], [1, 3]], scalar_offset=5, indirect_dim=1))
nisa.dma_copy(dst=rows, src=x.ap([[30, 4], [1, 3]], scalar_offset=0, vector_offset=t))
""", parameters="x, numbers", stores="part, rows")  # fmt: skip
    (part, rows), _, _ = copies(kernel, TABLE, ROWS)
    assert np.array_equal(part, TABLE[2:4, 5:8]) and np.array_equal(rows, TABLE[ROWS[:, 0], :3])


LOOP = """
out = nl.ndarray((4, 9), dtype=x.dtype, buffer=nl.shared_hbm)
n, t, column = (nl.ndarray(shape, dtype=each, buffer=nl.sbuf)
                for shape, each in (((1, 1), nl.int32), ((4, 1), nl.int32), ((4, 1), x.dtype)))
parts, kept = (nl.ndarray((4, 9), dtype=x.dtype, buffer=nl.sbuf) for _ in range(2))
end = nisa.register_alloc(3)
{first}
def body(i):
    nisa.dma_copy(dst=t, src=rows.select(0, i))
    nisa.dma_copy(dst=kept[:, 0:3], src=x.ap([[30, 4], [1, 3]], vector_offset=t), oob_mode=nisa.oob_mode.skip)
    nisa.tensor_copy(dst=column, src=kept[:, 0:1])
    nisa.tensor_copy(dst=parts.ap([[9, 4], [1, 1]], scalar_offset=i, indirect_dim=1), src=column)
nl.fori_loop(0, end, body)
nisa.dma_copy(dst=out, src=parts)
return out
"""


def test_what_is_there_stays_from_round_to_round(tmp_path):
    first = "for each in (parts, kept):\n    nisa.memset(dst=each, value=-1)"
    rows = np.array([[2, -1, 9, 5], [9, 3, -1, 9], [0, 12, 12, 1]], np.int32)[..., np.newaxis]
    held, expected = np.full(4, -1, np.float32), np.full((4, 9), -1, np.float32)
    for place, numbers in enumerate(rows[..., 0]):
        inside = (numbers >= 0) & (numbers < 9)
        held[inside] = TABLE[numbers[inside], 0]
        expected[:, place] = held
    kernel = write_kernel(tmp_path, LOOP.format(first=first), parameters="x, rows")
    assert np.array_equal(result(kernel, TABLE, rows), expected)
    with pytest.raises(ValueError, match=r"must be written before the loop, such as by nisa.memset"):
        result(write_kernel(tmp_path, LOOP.format(first=""), parameters="x, rows"), TABLE, rows)


@pytest.mark.parametrize("line, message", [
    ("nl.load(x[nl.load(rows), nl.load(rows)])", "at most one index may be in memory, not 2 more"),
    ("nl.load(x[rows, nl.arange(30)[None, :]])", "an index must be integers in SBUF, not int32 in shared_hbm"),
    ("nl.load(x[nl.load(x[0:4, 0:1]), nl.arange(30)[None, :]])", "must be integers in SBUF, not float32 in sbuf"),
    ("nl.exp(nl.load(x[0:4])[nl.arange(4)[:, None], nl.load(rows)[0, 0] + nl.arange(2)[None, :]])",
     "an operand's address must be fixed, not given by an index in memory"),
    ("nl.copy(nl.load(x[0:4])[nl.load(rows)[0, 0] + nl.arange(2)[:, None], nl.arange(2)[None, :]])",
     "must be along elements, not along dimension 0"),
    ("nl.load(x[nl.load(rows)[0, 0] + nl.arange(2)[:, None] - 1, nl.arange(2)[None, :]])", "must be at least 0"),
    ("nl.load(x[nl.load(rows), nl.arange(30)[None, :]], mode='wrap')", "oob_mode must be error or skip, not 'wrap'"),
    ("nisa.local_gather(nl.load(x[0:4]), nl.load(rows))", "partitions must be a multiple of 16"),
])  # fmt: skip
def test_what_is_refused(tmp_path, line, message):
    kernel = write_kernel(tmp_path, f"{line}\nreturn x", older=True, parameters="x, rows")
    with pytest.raises(ValueError, match=message + r".*\(kernel.py:8\)"):
        result(kernel, TABLE, ROWS)


def test_a_number_beyond_the_tensor_ends_the_run(tmp_path):
    kernel = store_kernel(tmp_path, "nl.load(x[nl.load(rows), nl.arange(30)[None, :]])", "(4, 30), x.dtype", "x, rows")
    with pytest.raises(Exception, match=r"gather=.*INDEX \(row -?\d+\)"):
        result(kernel, TABLE, SOME)
