"""Expansion of functions of elements: they precede views of their operand, so that they join its pass."""

from neuroncore_rtl.frontends.xla.fuse.placement import is_transparent, number_of
from neuroncore_rtl.frontends.xla.graph.builder import Builder
from neuroncore_rtl.frontends.xla.graph.operations import Pointwise, Reshape, Transpose, Value

__all__ = ["expand_pointwise"]


def expand_pointwise(builder: Builder, operation: Pointwise) -> tuple[Value, ...] | None:
    """Return the view of a function's result, if the function reads a view and numbers only; None otherwise."""
    numbers = {value: number_of(value, builder.makers) for value in operation.operands}
    views = [value for value, number in numbers.items() if number is None]
    maker = builder.makers.get(views[0]) if len(views) == 1 else None
    if not isinstance(maker, Reshape | Transpose) or is_transparent(maker) or not operation.result.size:
        return None
    (inner,) = maker.operands
    operands = [
        inner if (number := numbers[value]) is None else builder.number(number, inner.shape, value.type)
        for value in operation.operands
    ]
    result = builder.append(Pointwise, inner.shape, operation.result.type, *operands, function=operation.function)
    if isinstance(maker, Reshape):
        return (builder.reshape(result, *maker.result.shape),)
    return (builder.transpose(result, *maker.order),)
