"""Expansion of windows: reductions of windows, and their gradients, become functions of slices.

A reduction of windows combines along one dimension after the other, the innermost first, which keeps the order of the
elements. Along a dimension it combines a slice per offset, or, if windows are long, windows of 1, 2, 4, ... elements.
"""

from collections.abc import Sequence
from itertools import product
from math import prod

import numpy as np

from neuroncore_rtl.frontends.xla.expand.reductions import from_start, in_order
from neuroncore_rtl.frontends.xla.fuse.passes import combined_by, combining_function, neutral_number
from neuroncore_rtl.frontends.xla.graph.builder import Builder
from neuroncore_rtl.frontends.xla.graph.operations import Graph, ReduceWindow, SelectAndScatter, Value
from neuroncore_rtl.frontends.xla.graph.types import BOOLEAN
from neuroncore_rtl.frontends.xla.refusal import Refused
from neuroncore_rtl.kernels.tiling.phases import WindowShape

__all__ = ["expand_reduce_window", "expand_select_and_scatter"]

_MOST = 1024
"""Maximum elements of a window of a selection."""


def expand_reduce_window(builder: Builder, operation: ReduceWindow) -> tuple[Value, ...]:
    """Return the reduction of each window.

    The padding does not change a result. It is the initial value, which then must not either, for bodies that are not a
    single function.
    """
    count, window, shape = len(operation.results), operation.window, operation.results[0].shape
    values, starts = operation.operands[:count], operation.operands[count:]
    if not prod(shape):
        return tuple(builder.broadcast(start, shape) for start in starts)
    between = [spread - 1 for spread in window.spread]
    numbers = starts
    if function := combining_function(operation):
        numbers = [neutral_number(function, value.type) for value in values]
    pairs = zip(values, numbers, strict=True)
    values = [builder.pad(value, start, window.low, window.high, between) for value, start in pairs]
    for axis in reversed(range(len(shape))):
        values = _along(builder, operation.body, values, axis, window, shape[axis])
    return from_start(builder, operation.body, starts, values)


def _along(
    builder: Builder, body: Graph, values: Sequence[Value], axis: int, window: WindowShape, count: int
) -> Sequence[Value]:
    """Append the reduction of `count` windows along one dimension."""
    size, stride, dilation = window.size[axis], window.stride[axis], window.dilation[axis]
    span = (count - 1) * stride + 1

    def part(offset: int) -> Sequence[Value]:
        first = offset * dilation
        return [builder.part(value, axis, first, first + span, stride) for value in values]

    doublings = size.bit_length() - 1
    if (size - 1) * count <= doublings * values[0].shape[axis] + (size.bit_count() - 1) * count:
        return in_order(builder, body, [part(offset) for offset in range(size)])
    terms, offset = [], 0
    for reach in (1 << bit for bit in range(doublings + 1)):
        # Here an element of `values` is a window of `reach` elements.
        if size & reach:
            terms.append(part(offset))
            offset += reach
        if reach << 1 <= size:
            end, shift = values[0].shape[axis], reach * dilation
            halves = [[builder.part(value, axis, first, end - shift + first) for value in values]
                      for first in (0, shift)]  # fmt: skip
            values = builder.inline(body, *halves[0], *halves[1])
    return in_order(builder, body, terms)


def expand_select_and_scatter(builder: Builder, operation: SelectAndScatter) -> tuple[Value, ...]:
    """Return sums of sources, or their bits: each goes to the element of its window that comparisons in order leave."""
    (array, source, start), window = operation.operands, operation.window
    shape, counts, offsets = array.shape, source.shape, [*product(*map(range, window.size))]
    if (function := combined_by(operation.scatter)) not in ("add", "or"):
        raise Refused("a scatter of selected elements must add or combine by or, not by another function")
    if len(offsets) > _MOST:
        raise Refused(f"a selection's window must have at most {_MOST} elements, not {len(offsets)}")
    first = builder.broadcast(start, shape)
    if not source.size or not array.size:
        return (first,)
    parts, chosen = [], _choice(builder, operation, offsets)
    for number, offset in enumerate(offsets):
        here = builder.apply("equal", chosen, number) if len(offsets) > 1 else None
        part = builder.apply("select", here, source, 0) if here else source
        low = [at - before for at, before in zip(offset, window.low, strict=True)]
        ends = zip(shape, low, counts, window.stride, strict=True)
        high = [n - at - (count - 1) * stride - 1 for n, at, count, stride in ends]
        parts.append(builder.pad(part, 0, low, high, [stride - 1 for stride in window.stride]))
    return builder.inline(operation.scatter, first, builder.combine(function, parts))


def _choice(builder: Builder, operation: SelectAndScatter, offsets: Sequence[tuple[int, ...]]) -> Value:
    """Append the number of the offset at which the selected element of each window is; padding is never selected."""
    (array, source, _), window = operation.operands, operation.window
    counts, best, known = source.shape, None, None
    padded = builder.pad(array, 0, window.low, window.high, (0,) * array.rank)
    chosen = builder.number(0, counts)
    for number, offset in enumerate(offsets):
        candidate = builder.slice(padded, offset, counts, window.stride)
        there = _inside(builder, array.shape, counts, window, offset)
        if best is None:
            best, known = candidate, there
            continue
        (keep,) = builder.inline(operation.select, best, candidate)
        if known is not None:
            keep = builder.apply("and", keep, known)
        if there is not None:
            keep = builder.apply("or", keep, builder.apply("not", there))
        known = builder.apply("or", known, there) if known is not None and there is not None else None
        best = builder.apply("select", keep, best, candidate)
        chosen = builder.apply("select", keep, chosen, number)
    return chosen


def _inside(
    builder: Builder, shape: Sequence[int], counts: Sequence[int], window: WindowShape, offset: Sequence[int]
) -> Value | None:
    """Append whether the element at an offset of each window is no padding; None if none is."""
    found = []
    for axis, (n, count) in enumerate(zip(shape, counts, strict=True)):
        places = np.arange(count) * window.stride[axis] + offset[axis] - window.low[axis]
        inside = (places >= 0) & (places < n)
        if not inside.all():
            found.append(builder.broadcast(builder.constant(inside, BOOLEAN), counts, (axis,)))
    return builder.combine("and", found) if found else None
