"""Expansion of convolutions: integers into digits, and groups of one channel, which would waste the array.

With one channel in a group, a convolution is a sum over the filter's elements of slices times numbers. The gradient of
such a filter has few outputs, each of them a sum of products of a slice and all of the second operand.
"""

from collections.abc import Sequence
from itertools import product
from math import prod

from neuroncore_rtl.frontends.xla.expand.products import expand_integers
from neuroncore_rtl.frontends.xla.expand.reductions import reduced
from neuroncore_rtl.frontends.xla.graph.builder import Builder
from neuroncore_rtl.frontends.xla.graph.operations import Convolution, Value
from neuroncore_rtl.frontends.xla.graph.types import FLOAT32

__all__ = ["expand_convolution"]

_MOST = 32
"""Maximum slices that are multiplied by the vector engine."""


def expand_convolution(builder: Builder, convolution: Convolution) -> tuple[Value, ...] | None:
    """Return the result of a convolution of integers, or of groups of one channel; None for others."""
    (left, right), result = convolution.operands, convolution.result
    groups = convolution.groups * convolution.batch_groups
    outputs, channels = right.shape[0] // groups, right.shape[1]
    places = prod(result.shape[2:])
    if groups > 1 and result.size and right.size and left.size and left.type.is_float and right.type.is_float:
        if channels == 1 and prod(right.shape[2:]) <= _MOST:
            return (_by_taps(builder, convolution, groups),)
        if outputs == 1 and places <= _MOST:
            return (_by_places(builder, convolution, groups),)
    return expand_integers(builder, convolution)


def _operands(builder: Builder, convolution: Convolution, groups: int) -> tuple[Value, Value]:
    """Append the padded array as [groups, images, channels, ...], and the filter as [groups, outputs, ...]."""
    (left, right), window = convolution.operands, convolution.window
    left, right = builder.convert(left, FLOAT32), builder.convert(right, FLOAT32)
    between = [spread - 1 for spread in window.spread]
    sides = [(0, 0, *one) for one in (window.low, window.high, between)]
    left = builder.pad(left, 0, *sides)
    images, channels, *extents = left.shape
    order = 0, *range(2, 3 + len(extents))
    if convolution.groups > 1:
        left = builder.reshape(left, images, groups, channels // groups, *extents)
        left = builder.transpose(left, 1, *order)
    else:
        left = builder.reshape(left, groups, images // groups, channels, *extents)
    turned = [2 + axis for axis, reverse in enumerate(convolution.reverse) if reverse]
    right = builder.reverse(right, *turned) if turned else right
    return left, builder.reshape(right, groups, right.shape[0] // groups, *right.shape[1:])


def _by_taps(builder: Builder, convolution: Convolution, groups: int) -> Value:
    left, right = _operands(builder, convolution, groups)
    window, images, counts = convolution.window, left.shape[1], convolution.result.shape[2:]
    shape, terms = (groups, images, right.shape[1], *counts), []
    axes = [*range(3, 3 + len(counts))]
    for tap in product(*map(range, window.size)):
        starts = [place * step for place, step in zip(tap, window.dilation, strict=True)]
        part = _slice(builder, left, starts, counts, window.stride)
        number = _slice(builder, right, tap, (1,) * len(counts), (1,) * len(counts))
        part = builder.broadcast(builder.reshape(part, groups, images, *counts), shape, (0, 1, *axes))
        number = builder.broadcast(builder.reshape(number, groups, right.shape[1]), shape, (0, 2))
        terms.append(builder.apply("multiply", part, number))
    turned = builder.transpose(builder.combine("add", terms), 1, 0, 2, *axes)
    return builder.convert(builder.reshape(turned, *convolution.result.shape), convolution.result.type)


def _by_places(builder: Builder, convolution: Convolution, groups: int) -> Value:
    left, right = _operands(builder, convolution, groups)
    window, counts, images = convolution.window, convolution.result.shape[2:], left.shape[1]
    inner = right.shape[2:]
    shape, found = (groups, images, *inner), []
    number = builder.broadcast(builder.reshape(right, groups, *inner), shape, (0, *range(2, len(shape))))
    for place in product(*map(range, counts)):
        starts = [at * step for at, step in zip(place, window.stride, strict=True)]
        part = _slice(builder, left, starts, window.size, window.dilation)
        total = reduced(builder, "add", builder.apply("multiply", part, number), range(2, len(shape)))
        found.append(builder.reshape(total, groups, images, 1))
    joined = builder.transpose(builder.concatenate(found, 2), 1, 0, 2)
    return builder.convert(builder.reshape(joined, *convolution.result.shape), convolution.result.type)


def _slice(builder: Builder, value: Value, starts: Sequence[int], counts: Sequence[int], steps: Sequence[int]) -> Value:
    """Append a slice of the spatial dimensions, which follow three others."""
    return builder.slice(value, (0, 0, 0, *starts), (*value.shape[:3], *counts), (1, 1, 1, *steps))
