"""Sorts: rows of 2^n elements with a strict total order, which a network of comparisons sorts.

The original index is the last criterion, so that the order is stable. Rows are padded with elements that are last.
"""

from collections.abc import Sequence
from math import prod

import numpy as np

from neuroncore_rtl.frontends.xla.graph import operations as graph
from neuroncore_rtl.frontends.xla.graph.builder import Builder
from neuroncore_rtl.frontends.xla.graph.types import INTEGER32, UNSIGNED32, element_type
from neuroncore_rtl.frontends.xla.simplify.duplicates import numbered

__all__ = ["expand_sort"]


def expand_sort(builder: Builder, sort: graph.Sort) -> tuple[graph.Value, ...]:
    """Append the operands in order; keys of a comparison of a single criterion are computed once."""
    shape, axis = sort.operands[0].shape, sort.axis
    length = shape[axis]
    if prod(shape) == 0 or length == 1:
        return sort.operands
    order = [d for d in range(len(shape)) if d != axis] + [axis]
    rows, width = prod(shape) // length, 1 << (length - 1).bit_length()
    values = [builder.reshape(builder.transpose(one, *order), rows, length) for one in sort.operands]

    operands, key = values, _key(builder, sort.body, values)
    if key is None:
        body = _stable(sort.body, length, builder)
    else:
        operands = [*dict.fromkeys((key, *values))]
        body = _by(builder, len(operands))
    padded = [_padded(builder, one, width, np.iinfo(np.int32).max if one is key else 0) for one in operands]
    if len(body.arguments) > 2 * len(operands):
        padded.append(builder.iota((rows, width), 1))
    results = tuple(graph.Value((rows, width), one.type) for one in padded)
    builder.operations.append(graph.SortRows(operands=tuple(padded), results=results, source=builder.source, body=body))
    turned, back = [shape[d] for d in order], np.argsort(order).tolist()
    places = [operands.index(one) if key is not None else place for place, one in enumerate(values)]
    return tuple(
        builder.transpose(builder.reshape(builder.part(results[place], 1, 0, length), *turned), *back)
        for place in places
    )


def _padded(builder: Builder, value: graph.Value, width: int, number: int) -> graph.Value:
    if value.shape[1] == width:
        return value
    return builder.pad(value, number, (0, 0), (0, width - value.shape[1]), (0, 0))


def _by(builder: Builder, count: int) -> graph.Graph:
    """Return the body that compares int32 keys, the first of `count` operands, and if there are more, then indices."""
    inner = Builder(builder.source, builder.config)
    arguments = [graph.Value((), INTEGER32) for _ in range(2 * count + 2 * (count > 1))]
    result = inner.apply("less", *arguments[:2])
    if count > 1:
        tied = inner.apply("and", inner.apply("equal", *arguments[:2]), inner.apply("less", *arguments[-2:]))
        result = inner.apply("or", result, tied)
    return graph.Graph(arguments=tuple(arguments), operations=inner.operations, results=(result,))


def _stable(body: graph.Graph, length: int, builder: Builder) -> graph.Graph:
    """Return the body that is true if `body` is, or if it ties and the first index is lower; padding is last."""
    inner = Builder(builder.source, builder.config)
    arguments = tuple(graph.Value((), one.type) for one in body.arguments)
    i, j = graph.Value((), INTEGER32), graph.Value((), INTEGER32)
    (less,) = inner.inline(body, *arguments)
    (more,) = inner.inline(body, *(arguments[place ^ 1] for place in range(len(arguments))))
    before = inner.apply("less", i, j)
    result = inner.apply("or", less, inner.apply("and", inner.apply("not", more), before))
    padding = inner.apply("greater_equal", inner.apply("maximum", i, j), length)
    result = inner.apply("select", padding, before, result)
    return graph.Graph(arguments=(*arguments, i, j), operations=inner.operations, results=(result,))


def _key(builder: Builder, body: graph.Graph, values: Sequence[graph.Value]) -> graph.Value | None:
    """Append int32 keys in the order of the body; None if it does not compare a function of single elements."""
    last = body.makers.get(body.results[0])
    name = last.function.removesuffix("_total") if isinstance(last, graph.Pointwise) else None
    if name not in ("less", "greater"):
        return None
    assert isinstance(last, graph.Pointwise)
    one, other = last.operands
    is_total = last.function.endswith("_total")
    if one.type.is_float != is_total or not _is_mirrored(one, other, body):
        return None
    left = graph.Graph(arguments=body.arguments, operations=body.operations, results=(one,))
    (key,) = builder.inline(left, *[value for value in values for _ in range(2)])
    key = _ordered(builder, key)
    return builder.apply("not", key) if name == "greater" else key


def _is_mirrored(one: graph.Value, other: graph.Value, body: graph.Graph) -> bool:
    """Return whether a value of the first elements only is the same function as another of the second ones."""
    ids: dict[tuple, int] = {}
    sides = [numbered(body, {value: -n for n, value in enumerate(body.arguments[k::2], 1)}, ids) for k in (0, 1)]
    return sides[0][one] == sides[1][other]


def _ordered(builder: Builder, key: graph.Value) -> graph.Value:
    """Append int32 numbers in the order of integers, or in the total order of floats."""
    of, shape = key.type, key.shape
    if of.is_float:
        bits = builder.append(graph.Bitcast, shape, element_type(f"i{of.bits}"), key)
        bits = builder.convert(bits, INTEGER32)
        negative = builder.apply("less", bits, 0)
        return builder.apply("select", negative, builder.apply("xor", bits, (1 << (of.bits - 1)) - 1), bits)
    if of == UNSIGNED32:
        signed = builder.append(graph.Bitcast, shape, INTEGER32, key)
        return builder.apply("xor", signed, -(1 << 31))
    return builder.convert(key, INTEGER32)
