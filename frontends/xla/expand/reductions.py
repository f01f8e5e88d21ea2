"""Expansion of reductions: any body by halving, long ones in stages.

A pass reduces elements within a partition, by one function (`fuse.passes`). Other bodies combine neighbours, in order,
so that a body needs to be associative only.
"""

from collections.abc import Sequence
from math import prod

from neuroncore_rtl.frontends.xla.fuse.passes import combining_function, neutral_number
from neuroncore_rtl.frontends.xla.graph.builder import Builder
from neuroncore_rtl.frontends.xla.graph.operations import Dot, Graph, Reduce, Value

__all__ = ["expand_reduce", "from_start", "in_order", "reduced"]

_SHARE = 8
"""Tiles of reduced rows for which SBUF must have room."""
_ROWS, _RESULT = 16, 32
"""Minimum rows of the array, and elements of a result, for sums by the array: loads of short rows take longer."""
_LEAST = 16
"""Minimum elements that each partition reduces, if a reduction is split to use more partitions."""


def expand_reduce(builder: Builder, reduce: Reduce) -> tuple[Value, ...] | None:
    """Return the results of a reduction; None if a pass is capable of it."""
    count, shape = len(reduce.results), reduce.results[0].shape
    arrays, starts = reduce.operands[:count], reduce.operands[count:]
    axes = sorted(axis for axis in reduce.axes if arrays[0].shape[axis] != 1)
    if not arrays[0].size:
        return tuple(builder.broadcast(start, shape) for start in starts)
    if not axes:
        # As XLA: the initial value is neutral, and 0 + x would make 0 of -0.
        return tuple(builder.reshape(array, *shape) for array in arrays)
    function = combining_function(reduce)
    if function == "add" and _pays_array(builder, reduce, axes):
        return _by_array(builder, reduce, axes)
    if function is not None:
        return _in_stages(builder, reduce, function, axes)
    order = [*axes, *(d for d in range(arrays[0].rank) if d not in axes)]
    n = prod(arrays[0].shape[axis] for axis in axes)
    values = [builder.reshape(builder.transpose(array, *order), n, *shape) for array in arrays]
    found = [builder.reshape(value, *shape) for value in _halved(builder, reduce.body, values)]
    return from_start(builder, reduce.body, starts, found)


def reduced(builder: Builder, function: str, array: Value, axes: Sequence[int]) -> Value:
    """Append the elements along some dimensions, combined by a function."""
    if not axes:
        return array
    arguments = (Value((), array.type), Value((), array.type))
    inner = Builder(builder.source, builder.config)
    body = Graph(arguments=arguments, results=(inner.apply(function, *arguments),), operations=inner.operations)
    start = builder.number(neutral_number(function, array.type), (), array.type)
    shape = [extent for d, extent in enumerate(array.shape) if d not in axes]
    return builder.append(Reduce, shape, array.type, array, start, axes=tuple(axes), body=body)


def from_start(builder: Builder, body: Graph, starts: Sequence[Value], values: Sequence[Value]) -> tuple[Value, ...]:
    """Append the combination of initial values with the reduction of the elements."""
    return builder.inline(body, *(builder.broadcast(start, values[0].shape) for start in starts), *values)


def in_order(builder: Builder, body: Graph, terms: Sequence[Sequence[Value]]) -> Sequence[Value]:
    """Append the combination of several terms as a tree, in order."""
    if len(terms) == 1:
        return terms[0]
    half = len(terms) // 2
    return builder.inline(body, *in_order(builder, body, terms[:half]), *in_order(builder, body, terms[half:]))


def _halved(builder: Builder, body: Graph, values: Sequence[Value]) -> Sequence[Value]:
    """Append the combination of values along dimension 0, to an extent of 1."""
    tail = None
    while (n := values[0].shape[0]) > 1:
        if n % 2:
            last = [builder.part(value, 0, n - 1, n) for value in values]
            tail = builder.inline(body, *last, *tail) if tail else last
        pairs = [[builder.part(value, 0, first, n // 2 * 2, 2) for value in values] for first in (0, 1)]
        values = builder.inline(body, *pairs[0], *pairs[1])
    return builder.inline(body, *values, *tail) if tail else values


def _pays_array(builder: Builder, reduce: Reduce, axes: Sequence[int]) -> bool:
    """Return whether floats are added along leading dimensions, so that the elements of a row would not be adjacent."""
    array, size = reduce.operands[0], prod(reduce.operands[0].shape[axis] for axis in axes)
    kept = [d for d, extent in enumerate(array.shape) if extent != 1 and d not in axes]
    leading = array.type.is_float and bool(kept) and kept[0] > axes[-1]
    return leading and builder.config.rows >= _ROWS and size >= _LEAST and reduce.result.size >= _RESULT


def _by_array(builder: Builder, reduce: Reduce, axes: Sequence[int]) -> tuple[Value, ...]:
    """Append sums over leading dimensions as a product with ones, without rounding of its operands."""
    array, start = reduce.operands
    n, size = prod(array.shape[axis] for axis in axes), reduce.result.size
    operands = builder.number(1, (n,), array.type), builder.reshape(array, n, size)
    total = builder.append(Dot, (size,), array.type, *operands, batch=((), ()), contract=((0,), (0,)), is_exact=True)
    return from_start(builder, reduce.body, [start], [builder.reshape(total, *reduce.result.shape)])


def _in_stages(builder: Builder, reduce: Reduce, function: str, axes: Sequence[int]) -> tuple[Value, ...] | None:
    """Return the result of a reduction that a partition has no room for, or that would use too few partitions."""
    array, start = reduce.operands
    n, lanes = prod(array.shape[axis] for axis in axes), builder.config.partitions
    most = builder.config.sbuf_bytes // (4 * _SHARE)
    few = reduce.result.size * 2 <= lanes and n >= lanes * _LEAST
    if n <= most and not few:
        return None
    first = next(d for d in range(len(axes)) if [*axes[d:]] == [*range(axes[d], axes[-1] + 1)])
    if first:
        inner, gone = reduced(builder, function, array, axes[first:]), axes[first:]
        rest = tuple(axis - sum(other < axis for other in gone) for axis in reduce.axes if axis not in gone)
        kind, shape = array.type, reduce.result.shape
        return (builder.append(Reduce, shape, kind, inner, start, axes=rest, body=reduce.body),)
    low, high = axes[0], axes[-1] + 1
    flat = builder.reshape(array, *array.shape[:low], n, *array.shape[high:])
    size = min(most, -(-n // lanes)) if few else -(-n // -(-n // most))
    size = next((one for one in range(size, size // 2, -1) if n % one == 0), size)
    whole = n // size * size
    main = builder.reshape(
        builder.part(flat, low, 0, whole), *flat.shape[:low], n // size, size, *flat.shape[low + 1 :]
    )
    total = reduced(builder, function, reduced(builder, function, main, [low + 1]), [low])
    if whole < n:
        rest = reduced(builder, function, builder.part(flat, low, whole, n), [low])
        (total,) = builder.inline(reduce.body, total, rest)
    return from_start(builder, reduce.body, [start], [builder.reshape(total, *reduce.result.shape)])
