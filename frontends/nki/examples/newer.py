"""Kernels in the second dialect: every call writes to a `dst`. Tiles have the machine's maximum size."""

# Only the front end provides these imports.
# pyright: reportMissingImports=false
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def attention(q, k, v, causal=True):
    """Return softmax(q.T k / sqrt(width)) v for q and k [width, tokens] and v [tokens, width], in FP32 [tokens, width].

    Each tile of queries is multiplied by all keys: products in PSUM, a row of scores in SBUF.
    """
    width, tokens = q.shape
    tile = nl.tile_size.pmax
    assert width <= tile and tokens % tile == 0, f"tokens must be a multiple of {tile}, width at most {tile}"
    out = nl.ndarray((tokens, width), dtype=nl.float32, buffer=nl.shared_hbm)
    queries = nl.ndarray(q.shape, dtype=q.dtype, buffer=nl.sbuf)
    keys = nl.ndarray(k.shape, dtype=k.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=queries, src=q)
    nisa.dma_copy(dst=keys, src=k)
    values = []
    for first in range(0, tokens, tile):
        rows = nl.ndarray((tile, width), dtype=v.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=rows, src=v[first : first + tile, :])
        values.append(rows)
    for first in nl.affine_range(0, tokens, tile):
        sums = nl.ndarray((tile, tokens), dtype=nl.float32, buffer=nl.psum)
        nisa.nc_matmul(dst=sums, stationary=queries[:, first : first + tile], moving=keys)
        scores = nl.ndarray((tile, tokens), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_scalar(dst=scores, data=sums, op0=nl.multiply, operand0=width**-0.5)
        if causal:
            nisa.affine_select(
                dst=scores, pattern=[[-1, tokens]], offset=first, channel_multiplier=1, on_true_tile=scores,
                on_false_value=-1e9, cmp_op=nl.greater_equal,
            )  # fmt: skip
        least = nl.ndarray((tile, 1), dtype=nl.float32, buffer=nl.sbuf)
        total = nl.ndarray((tile, 1), dtype=nl.float32, buffer=nl.sbuf)
        weights = nl.ndarray((tile, tokens), dtype=v.dtype, buffer=nl.sbuf)
        nisa.tensor_reduce(dst=least, op=nl.maximum, data=scores, axis=1, negate=True)
        nisa.activation(
            dst=weights, op=nl.exp, data=scores, bias=least, reduce_op=nl.add, reduce_res=total,
            reduce_cmd=nisa.reduce_cmd.reset_reduce,
        )  # fmt: skip
        nisa.reciprocal(dst=total, data=total)
        found = nl.ndarray((tile, width), dtype=nl.float32, buffer=nl.psum)
        for number, rows in enumerate(values):
            turned = nl.ndarray((tile, tile), dtype=v.dtype, buffer=nl.psum)
            nisa.nc_transpose(dst=turned, data=weights[:, number * tile : (number + 1) * tile])
            few = nl.ndarray((tile, tile), dtype=v.dtype, buffer=nl.sbuf)
            nisa.tensor_copy(dst=few, src=turned)
            nisa.nc_matmul(dst=found, stationary=few, moving=rows)
        result = nl.ndarray((tile, width), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_scalar(dst=result, data=found, op0=nl.multiply, operand0=total)
        nisa.dma_copy(dst=out[first : first + tile, :], src=result)
    return out


@nki.jit
def normalised(x, gamma, epsilon=1e-5):
    """Return (x - mean) / sqrt(variance + epsilon) * gamma for each row of x [rows, columns]; gamma [1, columns]."""
    rows, columns = x.shape
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    gain = nl.ndarray(gamma.shape, dtype=gamma.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=gain, src=gamma)
    for first in range(0, rows, nl.tile_size.pmax):
        few = min(nl.tile_size.pmax, rows - first)
        tile = nl.ndarray((few, columns), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[first : first + few])
        triples = nl.ndarray((few, 6), dtype=nl.float32, buffer=nl.sbuf)
        moments = nl.ndarray((few, 2), dtype=nl.float32, buffer=nl.sbuf)
        nisa.bn_stats(dst=triples, data=tile)
        nisa.bn_aggr(dst=moments, data=triples)
        root = nl.ndarray((few, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.activation(dst=root, op=nl.rsqrt, data=moments[:, 1:2], bias=epsilon)
        nisa.tensor_scalar(
            dst=tile, data=tile, op0=nl.subtract, operand0=moments[:, 0:1], op1=nl.multiply, operand1=root
        )
        nisa.tensor_tensor(dst=tile, data1=tile, data2=nl.broadcast_to(gain, (few, columns)), op=nl.multiply)
        nisa.dma_copy(dst=out[first : first + few], src=tile)
    return out


@nki.jit
def decayed_sums(x, decay):
    """Return y[i] = decay y[i - 1] + x[i] along the rows of x, and the eight largest of each row with their positions.

    x is [partitions, columns], decay [partitions, 1].
    """
    rows, columns = x.shape
    sums = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    largest = nl.ndarray((rows, 8), dtype=nl.float32, buffer=nl.shared_hbm)
    places = nl.ndarray((rows, 8), dtype=nl.int32, buffer=nl.shared_hbm)
    tile, y = (nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.sbuf) for _ in range(2))
    factor = nl.ndarray((rows, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.dma_copy(dst=factor, src=decay)
    nisa.tensor_tensor_scan(
        dst=y, data0=nl.broadcast_to(factor, x.shape), data1=tile, initial=0.0, op0=nl.multiply, op1=nl.add
    )
    top = nl.ndarray((rows, 8), dtype=nl.float32, buffer=nl.sbuf)
    at = nl.ndarray((rows, 8), dtype=nl.int32, buffer=nl.sbuf)
    nisa.max8(dst=top, src=y)
    nisa.nc_find_index8(dst=at, data=y, vals=top)
    for target, source in ((sums, y), (largest, top), (places, at)):
        nisa.dma_copy(dst=target, src=source)
    return sums, largest, places


@nki.jit
def gated(x, threshold=0.5):
    """Return 2 x where x exceeds the threshold, else 2 column / columns; transposed, [columns, rows]."""
    rows, columns = x.shape
    out = nl.ndarray((columns, rows), dtype=x.dtype, buffer=nl.shared_hbm)
    tile, keys, result = (nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf) for _ in range(3))
    numbers = nl.ndarray(x.shape, dtype=nl.int32, buffer=nl.sbuf)
    total = nl.ndarray((rows, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.iota(dst=numbers, pattern=[[1, columns]])
    nisa.tensor_scalar(dst=result, data=numbers, op0=nl.multiply, operand0=1 / columns)
    nisa.tensor_scalar_reduce(
        dst=keys, data=tile, op0=nl.greater, operand0=threshold, reduce_op=nl.add, reduce_res=total
    )
    nisa.tensor_copy_predicated(dst=result, src=tile, predicate=keys)
    doubled = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.memset(dst=doubled, value=0.0)
    nisa.scalar_tensor_tensor(dst=doubled, data=result, op0=nl.multiply, operand0=2.0, op1=nl.add, operand1=doubled)
    nisa.dma_transpose(dst=out, src=doubled)
    return out


@nki.jit
def expert_rows(x, weights, tokens, expert):
    """Return zeros with row tokens[i] replaced by x[tokens[i]] weights[expert].

    x is [rows, features], weights [experts, features, outputs]. The indices in memory are tokens [n, 1], skipped if out
    of bounds, and expert [1, 1].
    """
    rows, features = x.shape
    count, outputs = tokens.shape[0], weights.shape[2]
    out = nl.ndarray((rows, outputs), dtype=x.dtype, buffer=nl.shared_hbm)
    zeros = nl.ndarray((count, features), dtype=x.dtype, buffer=nl.sbuf)
    chosen = nl.ndarray((count, features), dtype=x.dtype, buffer=nl.sbuf)
    numbers = nl.ndarray(tokens.shape, dtype=nl.int32, buffer=nl.sbuf)
    which = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)
    weight = nl.ndarray((features, outputs), dtype=weights.dtype, buffer=nl.sbuf)
    nisa.memset(dst=zeros, value=0)
    for first in range(0, rows, count):
        few = min(count, rows - first)
        nisa.dma_copy(dst=out[first : first + few], src=zeros[0:few, 0:outputs])
    nisa.dma_copy(dst=numbers, src=tokens)
    nisa.dma_copy(dst=which, src=expert)
    nisa.dma_copy(dst=weight, src=weights.select(0, which))
    nisa.memset(dst=chosen, value=0)
    by_rows = x.ap(pattern=[[features, count], [1, features]], vector_offset=numbers, indirect_dim=0)
    nisa.dma_copy(dst=chosen, src=by_rows, oob_mode=nisa.oob_mode.skip)
    turned = nl.ndarray((features, count), dtype=x.dtype, buffer=nl.psum)
    stationary = nl.ndarray((features, count), dtype=x.dtype, buffer=nl.sbuf)
    sums = nl.ndarray((count, outputs), dtype=nl.float32, buffer=nl.psum)
    result = nl.ndarray((count, outputs), dtype=x.dtype, buffer=nl.sbuf)
    nisa.nc_transpose(dst=turned, data=chosen)
    nisa.tensor_copy(dst=stationary, src=turned)
    nisa.nc_matmul(dst=sums, stationary=stationary, moving=weight)
    nisa.tensor_copy(dst=result, src=sums)
    rows_of_out = out.vector_select(0, numbers)
    nisa.dma_compute(dst=rows_of_out, srcs=[rows_of_out, result], reduce_op=nl.add, oob_mode=nisa.oob_mode.skip)
    return out


@nki.jit
def looked_up(x, places, start, width=4):
    """Return x[p, places[p, i]], places [partitions, n], and `width` columns of x from start [1, 1] on."""
    rows, columns = x.shape
    found = nl.ndarray(places.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    part = nl.ndarray((rows, width), dtype=x.dtype, buffer=nl.shared_hbm)
    table = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    numbers, picked = (nl.ndarray(places.shape, dtype=each, buffer=nl.sbuf) for each in (nl.int32, x.dtype))
    first = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)
    window = nl.ndarray((rows, width), dtype=x.dtype, buffer=nl.sbuf)
    for tile, source in ((table, x), (numbers, places), (first, start)):
        nisa.dma_copy(dst=tile, src=source)
    nisa.nc_n_gather(dst=picked, data=table, indices=numbers)
    moved = table.ap(pattern=[[columns, rows], [1, width]], scalar_offset=first, indirect_dim=1)
    nisa.tensor_copy(dst=window, src=moved)
    nisa.dma_copy(dst=found, src=picked)
    nisa.dma_copy(dst=part, src=window)
    return found, part


@nki.jit
def shared_places(x, places, width=2):
    """Return `width` elements of x [partitions, columns] from each place on, with places common to 16 partitions.

    Each partition uses all places [partitions, n] of its group of 16; the result is [partitions, n, 16, width].
    """
    rows, columns = places.shape
    out = nl.ndarray((rows, columns, 16, width), dtype=x.dtype, buffer=nl.shared_hbm)
    table, numbers = (nl.ndarray(one.shape, dtype=one.dtype, buffer=nl.sbuf) for one in (x, places))
    found = nl.ndarray(out.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=table, src=x)
    nisa.dma_copy(dst=numbers, src=places)
    nisa.local_gather(dst=found, src_buffer=table, index=numbers, num_elem_per_idx=width)
    nisa.dma_copy(dst=out, src=found)
    return out
