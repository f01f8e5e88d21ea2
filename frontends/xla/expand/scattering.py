"""Scatters: windows are written by row numbers; updates of the same element are combined before."""

from collections.abc import Sequence
from math import prod

import numpy as np

from neuroncore_rtl.frontends.xla.expand.indexing import RowWindows, row_numbers, unit_of, vector_starts
from neuroncore_rtl.frontends.xla.expand.reductions import reduced
from neuroncore_rtl.frontends.xla.fuse.passes import combined_by, neutral_number
from neuroncore_rtl.frontends.xla.graph.builder import Builder
from neuroncore_rtl.frontends.xla.graph.operations import Dot, Graph, Scatter, Value
from neuroncore_rtl.frontends.xla.graph.types import FLOAT32, INTEGER32, dense_steps, element_type
from neuroncore_rtl.frontends.xla.refusal import Refused

__all__ = ["expand_scatter"]

_MOST = 1 << 16
"""Maximum bytes whose sum is exact in FP32."""
_SEQUENCE = 256
"""Maximum windows that are combined one after the other."""
_PLAIN = frozenset(("add", "subtract", "multiply", "maximum", "minimum", "and", "or"))
"""Functions that combine updates in any order."""


def expand_scatter(builder: Builder, scatter: Scatter) -> tuple[Value, ...]:
    """Append the arrays with their updates; a window that does not fit is dropped."""
    count = len(scatter.results)
    arrays, updates = scatter.operands[:count], scatter.operands[count + 1 :]
    if updates[0].size == 0:
        return arrays
    shape, inner = arrays[0].shape, scatter.update_window_dims
    batching = scatter.input_batching_dims, scatter.scatter_indices_batching_dims
    kept = [d for d in range(len(shape)) if d not in (*scatter.inserted_window_dims, *batching[0])]
    window = [updates[0].shape[d] for d in inner]
    size = dict.fromkeys(range(len(shape)), 1) | dict(zip(kept, window, strict=True))
    outer = [d for d in range(updates[0].rank) if d not in inner]
    batch = [updates[0].shape[d] for d in outer]

    fits: list[Value] = []
    starts = vector_starts(builder, scatter, size, scatter.scattered_dims_to_operand_dims, batching, fits)
    numbers = row_numbers(builder, shape, starts, batch)
    if fits:
        numbers = builder.apply("select", builder.combine("and", fits), numbers, -1)
    numbers = builder.reshape(numbers, prod(batch))
    turned = (builder.transpose(one, *outer, *inner) for one in updates)
    rows = [builder.reshape(one, prod(batch), *window) for one in turned]
    windows = RowWindows(builder, unit_of(shape, starts), [dense_steps(shape)[d] for d in kept])

    arguments = scatter.body.arguments
    if scatter.body.results == arguments[count:]:
        return tuple(windows.write(array, numbers, one) for array, one in zip(arrays, rows, strict=True))
    if scatter.unique_indices or prod(batch) == 1:
        return _combine(windows, scatter.body, arrays, numbers, rows)
    if (function := _plain_function(scatter.body, arrays[0])) is not None:
        suffix = len(shape)
        while suffix and size[suffix - 1] == shape[suffix - 1]:
            suffix -= 1
        return (_merge(windows, scatter.body, function, arrays[0], numbers, rows[0], prod(shape[suffix:])),)
    if prod(batch) > _SEQUENCE:
        rule = "repeated indices must be combined by add, subtract, multiply, max, min, and, or"
        raise Refused(f"{rule}, if there are more than {_SEQUENCE} of them; use unique_indices=True", scatter.source)
    for n in range(prod(batch)):
        own = [builder.part(one, 0, n, n + 1) for one in rows]
        arrays = _combine(windows, scatter.body, arrays, builder.part(numbers, 0, n, n + 1), own)
    return tuple(arrays)


def _plain_function(body: Graph, array: Value) -> str | None:
    """Return the function of a body, if the order in which it combines elements has no effect, rounding apart."""
    function = combined_by(body)
    if function == "subtract" and (array.type.is_boolean or body.operations[0].operands != body.arguments):
        return None
    return function if function in _PLAIN else None


def _combine(windows: RowWindows, body: Graph, arrays: Sequence[Value], numbers: Value, rows: Sequence[Value]):
    """Append the arrays, where windows that are apart are combined with their updates."""
    builder = windows.builder
    # A dropped window, of number -1, reads row 0.
    first = builder.apply("maximum", numbers, 0)
    old = [windows.read(one, first, rows[0].shape[1:]) for one in arrays]
    new = builder.inline(body, *old, *rows)
    return tuple(windows.write(one, numbers, part) for one, part in zip(arrays, new, strict=True))


def _merge(
    windows: RowWindows, body: Graph, function: str, array: Value, numbers: Value, rows: Value, width: int
) -> Value:
    """Append the array with updates, several of the same element perhaps.

    Windows are divided into rows of `width` elements; any two rows are the same or apart. Updates of the same row are
    combined first: for each row of the array, or for each update if these are fewer.
    """
    builder = windows.builder
    numbers = _divided(windows, numbers, rows, width)
    updates = builder.reshape(rows, numbers.size, width)
    count = array.size // width
    table = builder.reshape(array, count, width)
    is_small = count <= numbers.size
    targets = builder.iota((count,), 0) if is_small else numbers
    shape = numbers.size, targets.size
    same = builder.apply("equal", builder.broadcast(numbers, shape, (0,)), builder.broadcast(targets, shape, (1,)))
    if function in ("add", "subtract") and not array.type.is_boolean:
        merged = (_sum_floats if array.type.is_float else _sum_integers)(builder, same, updates)
    else:
        merged = _reduced(builder, same, updates, function)
    if not is_small:
        by_row = RowWindows(builder, width, [1])
        return builder.reshape(_combine(by_row, body, [table], numbers, [merged])[0], *array.shape)
    (new,) = builder.inline(body, table, merged)
    hit = builder.broadcast(reduced(builder, "or", same, [0]), table.shape, (0,))
    return builder.reshape(builder.apply("select", hit, new, table), *array.shape)


def _divided(windows: RowWindows, numbers: Value, rows: Value, width: int) -> Value:
    """Append the numbers of the rows of `width` elements of all windows; -1 for a row of a dropped window."""
    builder, window = windows.builder, rows.shape[1:]
    outer = next(d for d in range(len(window) + 1) if prod(window[d:]) <= width and all(
        step < width or n == 1 for n, step in zip(window[d:], windows.steps[d:], strict=True)
    ))  # fmt: skip
    shape = numbers.size, *window[:outer]
    wide = builder.broadcast(numbers, shape, (0,))
    factors = (wide, windows.unit), *((builder.iota(shape, d + 1), windows.steps[d]) for d in range(outer))
    terms = [builder.apply("multiply", one, step // width) for one, step in factors]
    dropped = builder.apply("less", wide, 0)
    return builder.reshape(builder.apply("select", dropped, wide, builder.combine("add", terms)), prod(shape))


def _reduced(builder: Builder, same: Value, updates: Value, function: str) -> Value:
    """Append, for each column of `same`, the updates of its true rows, combined."""
    of, shape = updates.type, (same.shape[1], updates.shape[1], same.shape[0])
    wide = builder.broadcast(builder.transpose(updates, 1, 0), shape, (1, 2))
    mask = builder.broadcast(builder.transpose(same, 1, 0), shape, (0, 2))
    return reduced(builder, function, builder.apply("select", mask, wide, neutral_number(function, of)), [2])


def _product(builder: Builder, same: Value, columns: Value) -> Value:
    """Append the sums of columns over the true rows of each column of `same`."""
    onehot = builder.convert(same, columns.type)
    contract = (0,), (0,)
    shape = same.shape[1], columns.shape[1]
    return builder.append(Dot, shape, FLOAT32, onehot, columns, batch=((), ()), contract=contract, is_exact=True)


def _sum_floats(builder: Builder, same: Value, updates: Value) -> Value:
    """Append the sums, a product with 0 and 1; numbers that are not finite are counted, as 0 times them is NaN."""
    wide = builder.convert(updates, FLOAT32)
    narrow = element_type("bf16")
    finite = builder.apply("select", builder.apply("is_finite", wide), wide, 0.0)
    total = _product(builder, same, finite)
    undefined = builder.apply("not_equal", wide, wide)
    for number in (np.inf, -np.inf):
        either = builder.apply("or", builder.apply("equal", wide, number), undefined)
        some = _product(builder, same, builder.convert(either, narrow))
        special, zero = (builder.number(one, some.shape, FLOAT32) for one in (number, 0.0))
        hit = builder.apply("greater", some, zero)
        total = builder.apply("add", total, builder.apply("select", hit, special, zero))
    return builder.convert(total, updates.type)


def _sum_integers(builder: Builder, same: Value, updates: Value) -> Value:
    """Append the sums modulo the type's range: those of bytes are exact in FP32."""
    wide = builder.convert(updates, INTEGER32)
    shape, narrow = (same.shape[1], updates.shape[1]), element_type("bf16")
    total = builder.number(0, shape)
    for shift in range(0, updates.type.bits, 8):
        moved = builder.apply("shift_right_logical", wide, shift)
        octets = builder.convert(builder.apply("and", moved, 255), narrow)
        for first in range(0, updates.shape[0], _MOST):
            part = slice(first, min(first + _MOST, updates.shape[0]))
            some = _product(
                builder, builder.part(same, 0, part.start, part.stop), builder.part(octets, 0, part.start, part.stop)
            )
            some = builder.apply("shift_left", builder.convert(some, INTEGER32), shift)
            total = builder.apply("add", total, some)
    return builder.convert(total, updates.type)
