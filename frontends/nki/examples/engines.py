"""Kernels in the second dialect with calls that are expanded into several instructions."""

# Only the front end provides these imports.
# pyright: reportMissingImports=false
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def windowed_softmax(x, low, high):
    """Return the softmax of each row of x over columns low to high - 1, both [partitions, 1]; elsewhere 0."""
    out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    tile, powers = (nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.sbuf) for _ in range(2))
    first, end, most, total = (nl.ndarray(low.shape, dtype=nl.float32, buffer=nl.sbuf) for _ in range(4))
    for target, source in ((tile, x), (first, low), (end, high)):
        nisa.dma_copy(dst=target, src=source)
    nisa.range_select(
        dst=tile, on_true_tile=tile, comp_op0=nl.greater_equal, comp_op1=nl.less, bound0=first, bound1=end,
        reduce_res=most, on_false_value=nl.fp32.min,
    )  # fmt: skip
    nisa.exponential(
        dst=powers, src=tile, max_value=most, reduce_res=total, reduce_cmd=nisa.reduce_cmd.reset_reduce
    )  # fmt: skip
    nisa.reciprocal(dst=total, data=total)
    nisa.tensor_scalar(dst=powers, data=powers, op0=nl.multiply, operand0=total)
    nisa.dma_copy(dst=out, src=powers)
    return out


@nki.jit
def passed_round(x):
    """Return x + the next partition of x (cyclic in groups of 32), and the maximum of each column, [1, columns]."""
    rows, columns = x.shape
    out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    largest = nl.ndarray((1, columns), dtype=nl.float32, buffer=nl.shared_hbm)
    tile, turned = (nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.sbuf) for _ in range(2))
    top = nl.ndarray((1, columns), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.nc_stream_shuffle(dst=turned, src=tile, shuffle_mask=[(i + 1) % min(rows, 32) for i in range(32)])
    nisa.tensor_partition_reduce(dst=top, op=nl.maximum, data=tile)
    nisa.dma_compute(dst=out, srcs=[x, turned], reduce_op=nl.add)
    nisa.dma_copy(dst=largest, src=top)
    return out, largest


@nki.jit
def without_largest(x):
    """Return x with each row's eight largest elements set to 0, their positions, and the rest's running sums."""
    rows, columns = x.shape
    left, sums = (nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm) for _ in range(2))
    places = nl.ndarray((rows, 8), dtype=nl.int32, buffer=nl.shared_hbm)
    tile, running = (nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.sbuf) for _ in range(2))
    top = nl.ndarray((rows, 8), dtype=nl.float32, buffer=nl.sbuf)
    at = nl.ndarray((rows, 8), dtype=nl.int32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.max8(dst=top, src=tile)
    nisa.nc_match_replace8(dst=tile, data=tile, vals=top, imm=0.0, dst_idx=at)
    half = columns // 2
    for part, command in ((slice(0, half), "reset_reduce"), (slice(half, columns), "reduce")):
        nisa.tensor_scalar_cumulative(
            dst=running[:, part], src=tile[:, part], op0=nl.multiply, op1=nl.add, imm0=1.0,
            reduce_cmd=nisa.reduce_cmd[command],
        )  # fmt: skip
    for target, source in ((left, tile), (places, at), (sums, running)):
        nisa.dma_copy(dst=target, src=source)
    return left, places, sums


@nki.jit
def leaky(x, slope=0.25):
    """Return y = leaky relu(2 x - 1), at least -3, and sum of squares and maximum of each row, [partitions, 1]."""
    out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    squares, largest = (nl.ndarray((x.shape[0], 1), dtype=nl.float32, buffer=nl.shared_hbm) for _ in range(2))
    tile, keys, y = (nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.sbuf) for _ in range(3))
    total, top = (nl.ndarray((x.shape[0], 1), dtype=nl.float32, buffer=nl.sbuf) for _ in range(2))
    nisa.dma_copy(dst=tile, src=x)
    nisa.activate2(
        dst=y, op=nl.prelu, data=tile, imm0=2.0, imm1=1.0, op0=nl.multiply, op1=nl.subtract, relu_param=slope
    )  # fmt: skip
    nisa.tensor_scalar(dst=keys, data=y, op0=nl.less, operand0=-3.0)
    nisa.select_reduce(
        dst=y, predicate=keys, on_true=y, on_false=-3.0, reverse_pred=True, reduce_res=top,
        reduce_cmd=nisa.reduce_cmd.reset_reduce,
    )  # fmt: skip
    nisa.activation_reduce(dst=tile, op=nl.square, data=y, reduce_op=nl.add, reduce_res=total)
    for target, source in ((out, y), (squares, total), (largest, top)):
        nisa.dma_copy(dst=target, src=source)
    return out, squares, largest


@nki.jit
def segments(ids):
    """Return begin and end of each id's run, [1, 2, n], and positions and count of non-zero ids, for ids [1, n]."""
    n = ids.shape[1]
    bounds = nl.ndarray((1, 2, n), dtype=nl.int32, buffer=nl.shared_hbm)
    places = nl.ndarray((1, n + 1), dtype=nl.int32, buffer=nl.shared_hbm)
    tile = nl.ndarray(ids.shape, dtype=nl.int32, buffer=nl.sbuf)
    both, found = (nl.ndarray(target.shape, dtype=nl.int32, buffer=nl.sbuf) for target in (bounds, places))
    nisa.dma_copy(dst=tile, src=ids)
    nisa.sequence_bounds(dst=both, segment_ids=tile)
    nisa.nonzero_with_count(dst=found, src=tile)
    nisa.dma_copy(dst=bounds, src=both)
    nisa.dma_copy(dst=places, src=found)
    return bounds, places


@nki.jit
def random_numbers(x, probability=0.5):
    """Return x with dropout, uniform numbers from 2 to 3, and random bits OR their complement."""
    kept, between = (nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm) for _ in range(2))
    every = nl.ndarray(x.shape, dtype=nl.int16, buffer=nl.shared_hbm)
    tile, numbers = (nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.sbuf) for _ in range(2))
    bits, others = (nl.ndarray(x.shape, dtype=nl.int16, buffer=nl.sbuf) for _ in range(2))
    nisa.dma_copy(dst=tile, src=x)
    nisa.dropout(dst=tile, data=tile, prob=probability)
    nisa.rand2(dst=numbers, min=2.0, max=3.0)
    nisa.rng(dst=bits)
    nisa.tensor_scalar(dst=others, data=bits, op0=nl.bitwise_xor, operand0=-1)
    nisa.tensor_tensor(dst=bits, data1=bits, data2=others, op=nl.bitwise_or)
    for target, source in ((kept, tile), (between, numbers), (every, bits)):
        nisa.dma_copy(dst=target, src=source)
    return kept, between, every
