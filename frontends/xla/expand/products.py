"""Expansion of products: integers become sums of products of digits, and single elements need no array.

The array multiplies INT8 and adds INT32 modulo 2^32. Wider integers are therefore written in digits of -128 to 127:
x = d0 + 2^8 d1 + 2^16 d2 + 2^24 d3 modulo 2^32, and only 10 of the 16 products of digits count.
"""

from dataclasses import replace
from math import prod

from neuroncore_rtl.frontends.xla.expand.reductions import reduced
from neuroncore_rtl.frontends.xla.graph.builder import Builder
from neuroncore_rtl.frontends.xla.graph.operations import Dot, Operation, Value
from neuroncore_rtl.frontends.xla.graph.types import FLOAT32, INTEGER8, INTEGER32
from neuroncore_rtl.frontends.xla.refusal import Refused

__all__ = ["expand_dot", "expand_integers"]


def expand_dot(builder: Builder, dot: Dot) -> tuple[Value, ...] | None:
    """Return the result of a product of integers, of pairs of vectors, or of columns and rows; None for others."""
    contracted = prod(dot.operands[0].shape[axis] for axis in dot.contract[0])
    batches = prod(dot.operands[0].shape[axis] for axis in dot.batch[0])
    if not dot.result.size or not contracted:
        return (builder.number(0, dot.result.shape, dot.result.type),)
    if not dot.result.type.is_boolean and (contracted == 1 or 1 < batches == dot.result.size):
        return (_on_vectors(builder, dot),)
    return expand_integers(builder, dot)


def _on_vectors(builder: Builder, dot: Dot) -> Value:
    """Append products of elements [batch, left, right, contracted] and their sums, in FP32 or modulo 2^32."""
    wide, spread = FLOAT32 if dot.result.type.is_float else INTEGER32, []
    sides = [*zip(dot.operands, dot.batch, dot.contract, strict=True)]
    others = [[d for d in range(one.rank) if d not in batch and d not in contract] for one, batch, contract in sides]
    extents = [operand.shape[d] for (operand, _, contract), free in zip(sides, others, strict=True) for d in free]
    left = dot.operands[0]
    shape = [*(left.shape[d] for d in dot.batch[0]), *extents, *(left.shape[d] for d in dot.contract[0])]
    first = [len(dot.batch[0]), len(dot.batch[0]) + len(others[0])]
    for (operand, batch, contract), free, start in zip(sides, others, first, strict=True):
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
                result = builder.apply("shift_left", result, builder.number(8 * (low + high), result.shape))
            terms.append(result)
    total = builder.combine("add", terms)
    if of.is_boolean:
        return (builder.apply("not_equal", total, builder.number(0, total.shape)),)
    return (builder.convert(total, of),)


def _digits(builder: Builder, value: Value) -> list[Value]:
    """Append the digits of integers, lowest first."""
    if value.type == INTEGER8 or value.type.is_boolean:
        return [builder.convert(value, INTEGER8)]
    # A digit more than bytes: 32,767 is -1 + 2^8 128, and 128 is no digit.
    count = min(4, value.type.bits // 8 + 1)
    rest, found = builder.convert(value, INTEGER32), []
    half, mask, eight = (builder.number(number, value.shape) for number in (128, 255, 8))
    for number in range(count):
        digit = builder.apply("subtract", builder.apply("and", builder.apply("add", rest, half), mask), half)
        found.append(builder.convert(digit, INTEGER8))
        if number < count - 1:
            rest = builder.apply("shift_right_arithmetic", builder.apply("subtract", rest, digit), eight)
    return found
