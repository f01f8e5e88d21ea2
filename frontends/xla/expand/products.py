"""Expansion of products: integers become sums of products of digits, and single elements need no array.

The array multiplies INT8 and adds INT32 modulo 2^32. Wider integers are therefore written in digits of -128 to 127:
x = d0 + 2^8 d1 + 2^16 d2 + 2^24 d3 modulo 2^32, and only 10 of the 16 products of digits count.
"""

from dataclasses import replace
from math import prod

from neuroncore_rtl.frontends.xla.expand.reductions import reduced
from neuroncore_rtl.frontends.xla.graph.builder import Builder
from neuroncore_rtl.frontends.xla.graph.operations import Dot, Operation, Reshape, Transpose, Value
from neuroncore_rtl.frontends.xla.graph.types import FLOAT32, INTEGER8, INTEGER32
from neuroncore_rtl.frontends.xla.refusal import Refused

__all__ = ["expand_dot", "expand_integers"]


def expand_dot(builder: Builder, dot: Dot) -> tuple[Value, ...] | None:
    """Return the result of a product of integers, of pairs of vectors, or of columns and rows; None for others."""
    contracted = prod(dot.operands[0].shape[axis] for axis in dot.contract[0])
    batches = prod(dot.operands[0].shape[axis] for axis in dot.batch[0])
    if not dot.result.size or not contracted:
        return (builder.number(0, dot.result.shape, dot.result.type),)
    if (found := _without_merges(builder, dot)) is not None:
        return (found,)
    if not dot.result.type.is_boolean and (contracted == 1 or 1 < batches == dot.result.size):
        return (_on_vectors(builder, dot),)
    return expand_integers(builder, dot)


def _without_merges(builder: Builder, dot: Dot) -> Value | None:
    """Return the product of an operand's dimensions before a reshape that merges them: views need no copy."""
    for side in (0, 1):
        maker = builder.makers.get(dot.operands[side])
        if not isinstance(maker, Reshape) or not isinstance(builder.makers.get(maker.operands[0]), Transpose):
            continue
        groups = _merged_dimensions(maker.operands[0].shape, maker.result.shape)
        extents = maker.operands[0].shape
        if groups is None or all(sum(extents[d] > 1 for d in some) < 2 for some in groups):
            continue
        operands, axes = [*dot.operands], [[[*dot.batch[n]], [*dot.contract[n]]] for n in (0, 1)]
        operands[side] = maker.operands[0]
        # Batch and contracted dimensions are in pairs: those of the other operand are split.
        other, split = operands[1 - side], {}
        for kind in (0, 1):
            for mine, theirs in zip(axes[side][kind], axes[1 - side][kind], strict=True):
                split[theirs] = [operands[side].shape[d] for d in groups[mine]]
        shapes = [split.get(d, [extent]) for d, extent in enumerate(other.shape)]
        firsts = [sum(map(len, shapes[:d])) for d in range(other.rank)]
        operands[1 - side] = builder.reshape(other, *(extent for some in shapes for extent in some))
        for kind in (0, 1):
            axes[1 - side][kind] = [firsts[d] + n for d in axes[1 - side][kind] for n in range(len(shapes[d]))]
            axes[side][kind] = [d for one in axes[side][kind] for d in groups[one]]
        shape = [operands[0].shape[d] for d in axes[0][0]]
        for operand, (batch, contract) in zip(operands, axes, strict=True):
            shape += [extent for d, extent in enumerate(operand.shape) if d not in batch and d not in contract]
        batch, contract = ((tuple(axes[0][n]), tuple(axes[1][n])) for n in (0, 1))
        fields = {"batch": batch, "contract": contract, "is_exact": dot.is_exact}
        return builder.reshape(builder.append(Dot, shape, dot.result.type, *operands, **fields), *dot.result.shape)
    return None


def _merged_dimensions(shape: tuple[int, ...], merged: tuple[int, ...]) -> list[list[int]] | None:
    """Return the dimensions that each dimension of a reshape's result consists of; None if some are divided."""
    groups, first = [], 0
    for extent in merged:
        end, size = first, 1
        while end < len(shape) and size < extent:
            size *= shape[end]
            end += 1
        if size != extent:
            return None
        groups.append([*range(first, end)])
        first = end
    return groups if first == len(shape) else None


def _on_vectors(builder: Builder, dot: Dot) -> Value:
    """Append products of elements [batch, left, right, contracted] and their sums, in FP32 or modulo 2^32."""
    wide, spread = FLOAT32 if dot.result.type.is_float else INTEGER32, []
    left, batch, contract, free = dot.sides[0]
    extents = [operand.shape[d] for operand, *_, others in dot.sides for d in others]
    shape = [*(left.shape[d] for d in batch), *extents, *(left.shape[d] for d in contract)]
    firsts = len(batch), len(batch) + len(free)
    for (operand, batch, contract, free), start in zip(dot.sides, firsts, strict=True):
        order = [*batch, *free, *contract]
        places = [*range(len(batch)), *range(start, start + len(free)), *range(len(shape) - len(contract), len(shape))]
        turned = builder.transpose(builder.convert(operand, wide), *order)
        spread.append(builder.broadcast(turned, shape, places))
    product = builder.apply("multiply", *spread)
    return builder.convert(reduced(builder, "add", product, range(len(dot.result.shape), len(shape))), dot.result.type)


def expand_integers(builder: Builder, operation: Operation) -> tuple[Value, ...] | None:
    """Return the result of a product or convolution of integers or booleans; None for floats and for INT8's INT32."""
    left, right = operation.operands
    of = operation.result.type
    if left.type.is_float != right.type.is_float or left.type.is_float != of.is_float:
        raise Refused(f"operands and result must be floats or integers, not {left}, {right} and {of}")
    if of.is_float or (left.type == right.type == INTEGER8 and of == INTEGER32):
        return None
    terms = []
    for low, digit in enumerate(_digits(builder, left)):
        for high, other in enumerate(_digits(builder, right)):
            if 8 * (low + high) >= (32 if of.is_boolean else of.bits):
                continue
            result = Value(operation.result.shape, INTEGER32)
            builder.operations.append(replace(operation, operands=(digit, other), results=(result,)))
            if low + high:
                result = builder.apply("shift_left", result, 8 * (low + high))
            terms.append(result)
    total = builder.combine("add", terms)
    if of.is_boolean:
        return (builder.apply("not_equal", total, 0),)
    return (builder.convert(total, of),)


def _digits(builder: Builder, value: Value) -> list[Value]:
    """Append the digits of integers, lowest first."""
    if value.type == INTEGER8 or value.type.is_boolean:
        return [builder.convert(value, INTEGER8)]
    # A digit more than bytes: 32,767 is -1 + 2^8 128, and 128 is no digit.
    count = min(4, value.type.bits // 8 + 1)
    rest, found = builder.convert(value, INTEGER32), []
    for number in range(count):
        digit = builder.apply("subtract", builder.apply("and", builder.apply("add", rest, 128), 255), 128)
        found.append(builder.convert(digit, INTEGER8))
        if number < count - 1:
            rest = builder.apply("shift_right_arithmetic", builder.apply("subtract", rest, digit), 8)
    return found
