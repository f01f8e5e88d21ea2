"""Expansion of functions of elements: they precede views of their operand, so that they join its pass."""

from neuroncore_rtl.frontends.xla.fuse.placement import is_transparent, placed_root
from neuroncore_rtl.frontends.xla.graph.builder import Builder
from neuroncore_rtl.frontends.xla.graph.operations import Constant, Pointwise, Reshape, Transpose, Value

__all__ = ["expand_pointwise"]


def expand_pointwise(builder: Builder, operation: Pointwise) -> tuple[Value, ...] | None:
    """Return the view of a function's result, if the function reads a view and numbers only; None otherwise."""
    views = [value for value in operation.operands if not _is_number(builder, value)]
    maker = builder.makers.get(views[0]) if len({*views}) == 1 else None
    if not isinstance(maker, Reshape | Transpose) or is_transparent(maker) or not operation.result.size:
        return None
    (inner,) = maker.operands
    operands = [
        inner if value is views[0] else builder.broadcast(_number(builder, value), inner.shape)
        for value in operation.operands
    ]
    result = builder.append(Pointwise, inner.shape, operation.result.type, *operands, function=operation.function)
    if isinstance(maker, Reshape):
        return (builder.reshape(result, *maker.result.shape),)
    return (builder.transpose(result, *maker.order),)


def _is_number(builder: Builder, value: Value) -> bool:
    root, _ = placed_root(value, (None,) * value.rank, builder.makers)
    maker = builder.makers.get(root)
    return isinstance(maker, Constant) and maker.splat is not None


def _number(builder: Builder, value: Value) -> Value:
    root, _ = placed_root(value, (None,) * value.rank, builder.makers)
    maker = builder.makers[root]
    assert isinstance(maker, Constant)
    return builder.constant(maker.array.reshape(-1)[0].reshape(()), root.type)
