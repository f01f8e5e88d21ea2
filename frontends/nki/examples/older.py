"""Kernels in the first dialect: calls return tiles, indices are expressions, masks cut off the excess."""

# Only the front end provides these imports.
# pyright: reportMissingImports=false, reportIndexIssue=false
import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np
from neuronxcc.nki.isa.constants import oob_mode
from neuronxcc.nki.language import par_dim


@nki.jit
def softmax_rows(x):
    rows, columns = x.shape
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    p = nl.arange(nl.tile_size.pmax)[:, None]
    f = nl.arange(columns)[None, :]
    for number in nl.affine_range((rows + nl.tile_size.pmax - 1) // nl.tile_size.pmax):
        first = number * nl.tile_size.pmax
        tile = nl.load(x[first + p, f], mask=first + p < rows)
        powers = nl.exp(nl.subtract(tile, nl.max(tile, axis=[1], keepdims=True)))
        nl.store(out[first + p, f], value=powers / nl.sum(powers, axis=[1]), mask=first + p < rows)
    return out


@nki.jit
def added(a, b):
    tile = nl.tile_size.pmax
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    p = nl.program_id(0) * tile + nl.arange(tile)[:, None]
    f = nl.arange(a.shape[1])[None, :]
    nl.store(out[p, f], value=nl.load(a[p, f]) + nl.load(b[p, f]))
    return out


def added_on_grid(a, b):
    return added[a.shape[0] // nl.tile_size.pmax,](a, b)


@nki.jit
def product(x, w, bias):
    """Return gelu(x w + bias) for x [tokens, features], w [features, outputs], bias [outputs, 1]; transposed.

    Each tile of the contraction is a block of one tensor; the products accumulate in PSUM.
    """
    (tokens, features), outputs = x.shape, w.shape[1]
    tile = nl.tile_size.pmax
    blocks = features // tile
    assert features % tile == 0 and outputs <= tile and tokens <= tile
    out = nl.ndarray((outputs, tokens), dtype=nl.float32, buffer=nl.shared_hbm)
    p = nl.arange(tile)[:, None]
    x_t = nl.ndarray((blocks, par_dim(tile), tokens), dtype=x.dtype)
    weights = nl.ndarray((blocks, par_dim(tile), outputs), dtype=w.dtype)
    for block in nl.affine_range(blocks):
        x_t[block, p, nl.arange(tokens)[None, :]] = nl.load_transpose2d(x[:, nl.ds(block * tile, tile)])
        weights[block] = nl.load(w[nl.ds(block * tile, tile), :])
    sums = nl.zeros((par_dim(outputs), tokens), dtype=np.float32, buffer=nl.psum)
    for block in nl.affine_range(blocks):
        sums += nisa.nc_matmul(stationary=weights[block], moving=x_t[block])
    nl.store(out, value=nisa.activation(op=nl.gelu, data=sums, bias=nl.load(bias), scale=1.0))
    return out


@nki.jit
def statistics(x):
    """Return mean, variance and largest magnitude of each row of x, [partitions, 3], and the even columns of x."""
    rows, columns = x.shape
    out = nl.ndarray((rows, 3), dtype=nl.float32, buffer=nl.shared_hbm)
    even = nl.ndarray((rows, columns // 2), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    i_p, i_f = nl.mgrid[0:rows, 0 : columns // 2]
    found = nl.ndarray((rows, 3), dtype=nl.float32)
    found[:, 0] = nl.mean(tile, axis=1)
    found[:, 1] = nl.var(tile, axis=1)
    found[:, 2] = nl.max(nl.abs(tile), axis=1)
    nl.store(out, value=found)
    nl.store(even, value=nl.copy(tile[i_p, 2 * i_f]))
    return out, even


@nki.jit
def added_rows(table, x, rows):
    """Return table with x[i] added to row rows[i]; the rows must differ, and those out of bounds are skipped.

    table is [any, columns], x [n, columns], rows [n, 1].
    """
    (count, columns), all_rows = x.shape, table.shape[0]
    out = nl.ndarray(table.shape, dtype=table.dtype, buffer=nl.shared_hbm)
    p, f = nl.mgrid[0 : nl.tile_size.pmax, 0:columns]
    for first in nl.affine_range(0, all_rows, nl.tile_size.pmax):
        nl.store(out[first + p, f], value=nl.load(table[first + p, f], mask=first + p < all_rows),
                 mask=first + p < all_rows)  # fmt: skip
    i_p, i_f = nl.arange(count)[:, None], nl.arange(columns)[None, :]
    numbers = nl.load(rows)
    sums = nl.load(out[numbers[i_p, 0], i_f], mode=oob_mode.skip) + nl.load(x)
    nl.store(out[numbers[i_p, 0], i_f], value=sums, mode=oob_mode.skip)
    return out


@nki.jit
def repeated(values, limit):
    """Return for each of values [1, n], below `limit`, its total count, and its previous position or -1.

    Every value serves as an index in memory, into counts in HBM and into positions on chip.
    """
    count = values.shape[1]
    counts = nl.ndarray((1, limit), dtype=np.int32, buffer=nl.private_hbm)
    often, before = (nl.ndarray(values.shape, dtype=np.int32, buffer=nl.shared_hbm) for _ in range(2))
    numbers, one = nl.load(values), nl.full((1, 1), 1, dtype=np.int32)
    nl.store(counts, value=nl.zeros((1, limit), dtype=np.int32))
    last, found = nl.full((1, limit), -1, dtype=np.int32), nl.ndarray(values.shape, dtype=np.int32)
    p, f = nl.mgrid[0:1, 0:1]
    for place in nl.sequential_range(count):
        nl.atomic_rmw(counts[p, numbers[0, place] + f], value=one, op=np.add)
        found[p, place] = nisa.tensor_copy_dynamic_src(last[p, numbers[0, place] + f])
        now = nl.full((1, 1), place, dtype=np.int32)
        nisa.tensor_copy_dynamic_dst(dst=last[p, numbers[0, place] + f], src=now)
    nl.store(often, value=nl.gather_flattened(data=nl.load(counts), indices=numbers))
    nl.store(before, value=found)
    return often, before
