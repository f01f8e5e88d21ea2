"""Indexing: dynamic slices, gathers and scatters become row numbers, and copies of windows by them.

The row number of a window is the element at which it starts, divided by a unit that divides all such elements.
"""

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np

from neuroncore_rtl.frontends.xla.graph import operations as graph
from neuroncore_rtl.frontends.xla.graph.builder import Builder
from neuroncore_rtl.frontends.xla.graph.operations import Value
from neuroncore_rtl.frontends.xla.graph.types import INTEGER32, dense_steps

__all__ = [
    "RowWindows", "expand_dynamic_slice", "expand_dynamic_update", "expand_gather", "row_numbers", "unit_of",
    "vector_starts",
]  # fmt: skip


def unit_of(shape: Sequence[int], starts: Mapping[int, Value]) -> int:
    """Return the number of elements that divides every start; the size of the array if all of them are 0."""
    return min((dense_steps(shape)[d] for d in starts), default=max(1, prod(shape)))


def _clamped(builder: Builder, start: Value, most: int) -> Value:
    """Append the nearest index from 0 to `most`, as int32."""
    high = min(most, np.iinfo(start.type.dtype).max)
    return builder.convert(builder.apply("clamp", 0, start, high), INTEGER32)


def _is_within(builder: Builder, start: Value, most: int) -> Value:
    """Append whether an index is from 0 to `most`."""
    least = builder.apply("greater_equal", start, 0)
    if most >= np.iinfo(start.type.dtype).max:
        return least
    return builder.apply("and", least, builder.apply("less_equal", start, most))


def row_numbers(builder: Builder, shape: Sequence[int], starts: Mapping[int, Value], batch: Sequence[int]) -> Value:
    """Append the row numbers, of shape `batch`, of windows with these starts in dimensions of an array."""
    strides, unit = dense_steps(shape), unit_of(shape, starts)
    factors = [(start, strides[d] // unit) for d, start in starts.items()]
    terms = [one if n == 1 else builder.apply("multiply", one, n) for one, n in factors]
    return builder.combine("add", terms) if terms else builder.number(0, batch)


class RowWindows:
    """Windows of arrays: `unit` elements from one row number to the next, `steps` between the elements of a window."""

    def __init__(self, builder: Builder, unit: int, steps: Sequence[int]):
        self.builder, self.unit, self.steps = builder, unit, tuple(steps)

    def read(self, array: Value, numbers: Value, window: Sequence[int]) -> Value:
        """Append the windows of an array at row numbers [n]."""
        shape, fields = (*numbers.shape, *window), {"unit": self.unit, "steps": self.steps}
        return self.builder.append(graph.GatherRows, shape, array.type, array, numbers, **fields)

    def write(self, array: Value, numbers: Value, windows: Value) -> Value:
        """Append the array with windows at row numbers [n]."""
        fields = {"unit": self.unit, "steps": self.steps}
        return self.builder.append(graph.ScatterRows, array.shape, array.type, array, numbers, windows, **fields)


def _slices(
    builder: Builder, shape: Sequence[int], size: Sequence[int], starts: Sequence[Value]
) -> tuple[RowWindows, Value]:
    """Append the row number of a slice with clamped starts; return it and the windows."""
    moving = {
        d: _clamped(builder, builder.reshape(start, 1), extent - count)
        for d, (extent, count, start) in enumerate(zip(shape, size, starts, strict=True))
        if extent > count
    }
    return RowWindows(builder, unit_of(shape, moving), dense_steps(shape)), row_numbers(builder, shape, moving, (1,))


def expand_dynamic_slice(builder: Builder, operation: graph.DynamicSlice) -> tuple[Value]:
    """Append the window of a slice."""
    array, *indices = operation.operands
    if operation.size == array.shape:
        return (array,)
    if operation.result.size == 0:
        return (builder.number(0, operation.size, array.type),)
    windows, number = _slices(builder, array.shape, operation.size, indices)
    return (builder.reshape(windows.read(array, number, operation.size), *operation.size),)


def expand_dynamic_update(builder: Builder, operation: graph.DynamicUpdate) -> tuple[Value]:
    """Append the array with the window of the new slice."""
    array, update, *indices = operation.operands
    if update.size == 0 or update.shape == array.shape:
        return (array if update.size == 0 else update,)
    windows, number = _slices(builder, array.shape, update.shape, indices)
    return (windows.write(array, number, builder.reshape(update, 1, *update.shape)),)


def vector_starts(
    builder: Builder,
    operation: graph.Gather | graph.Scatter,
    size: Mapping[int, int],
    along: Sequence[int],
    batching: tuple[Sequence[int], Sequence[int]],
    fits: list[Value] | None = None,
) -> dict[int, Value]:
    """Append the starts of windows in the dimensions of an array, from index vectors.

    Arguments:
        builder: where operations are appended.
        operation: its operands are an array and indices; past their last dimension, a vector is of one index.
        size: extents of a window.
        along: dimensions of the components of a vector, which are clamped.
        batching: batch dimensions of the array, and those of the indices with the same indices.
        fits: takes whether each component needs no clamping.
    """
    array, indices = operation.operands[0], operation.operands[len(operation.results)]
    axis, starts, vectors = operation.index_vector_dim, {}, [indices]
    batch = [extent for d, extent in enumerate(indices.shape) if d != axis]
    if axis != indices.rank:
        vectors = [builder.part(indices, axis, k, k + 1) for k in range(indices.shape[axis])]
    for d, vector in zip(along, vectors, strict=True):
        start, most = builder.reshape(vector, *batch), array.shape[d] - size[d]
        if fits is not None:
            fits.append(_is_within(builder, start, most))
        if most:
            starts[d] = _clamped(builder, start, most)
    for d, place in zip(*batching, strict=True):
        starts[d] = builder.iota(batch, place - (place > axis))
    return starts


def expand_gather(builder: Builder, gather: graph.Gather) -> tuple[Value]:
    """Append the windows of index vectors, clamped so that they fit, and the order of the result's dimensions."""
    array, indices = gather.operands
    result, shape, size = gather.result, array.shape, gather.slice_sizes
    if result.size == 0:
        return (builder.number(0, result.shape, result.type),)
    batching = gather.operand_batching_dims, gather.start_indices_batching_dims
    starts = vector_starts(builder, gather, dict(enumerate(size)), gather.start_index_map, batching)
    batch = [extent for d, extent in enumerate(indices.shape) if d != gather.index_vector_dim]
    numbers = builder.reshape(row_numbers(builder, shape, starts, batch), prod(batch))
    kept = [d for d in range(len(shape)) if d not in (*gather.collapsed_slice_dims, *batching[0])]
    window = [size[d] for d in kept]
    windows = RowWindows(builder, unit_of(shape, starts), [dense_steps(shape)[d] for d in kept])
    rows = windows.read(array, numbers, window)
    outer = iter(range(len(batch)))
    order = [
        len(batch) + gather.offset_dims.index(d) if d in gather.offset_dims else next(outer)
        for d in range(result.rank)
    ]  # fmt: skip
    return (builder.transpose(builder.reshape(rows, *batch, *window), *order),)
