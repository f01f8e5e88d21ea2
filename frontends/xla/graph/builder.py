"""Builder of operations: for passes that replace an operation by simpler ones."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

import numpy as np

from neuroncore_rtl.frontends.xla.graph import operations as graph
from neuroncore_rtl.frontends.xla.graph.types import BOOLEAN, INTEGER32, ElementType
from neuroncore_rtl.kernels.source import SourceLine
from neuroncore_rtl.spec.config import PRESETS, Config

__all__ = ["Builder"]

_Operand = graph.Value | float
_BOOLEAN = ("equal", "not_equal", "less", "greater", "is_finite")
"""Beginnings of the names of boolean functions."""


@dataclass
class Builder:
    """Appends operations with the source line of the one that they replace; methods return the result.

    Arguments:
        source: the user's line.
        config: the machine.
        makers: operations that define values around the one that is replaced.
        operations: the appended operations.
    """

    source: SourceLine
    config: Config = field(default_factory=lambda: PRESETS["small"])
    makers: Mapping[graph.Value, graph.Operation] = field(default_factory=dict)
    operations: list[graph.Operation] = field(default_factory=list)

    def append(
        self, kind: type[graph.Operation], shape: Sequence[int], of: ElementType, *operands: graph.Value, **fields
    ) -> graph.Value:
        """Append an operation with one result of the given shape and type."""
        result = graph.Value(tuple(shape), of)
        self.operations.append(kind(operands=operands, results=(result,), source=self.source, **fields))
        return result

    def apply(self, function: str, *operands: _Operand) -> graph.Value:
        """Append a function of elements; comparisons are boolean, others have the last operand's type.

        A number stands for an array of it like the last operand that is no number.
        """
        like = [one for one in operands if isinstance(one, graph.Value)][-1]
        values = [one if isinstance(one, graph.Value) else self.number(one, like.shape, like.type) for one in operands]
        of = BOOLEAN if function.startswith(_BOOLEAN) else values[-1].type
        return self.append(graph.Pointwise, like.shape, of, *values, function=function)

    def combine(self, function: str, terms: Iterable[_Operand]) -> Any:
        """Append a function of two elements, again and again from the first term to the last."""
        return reduce(lambda total, term: self.apply(function, total, term), terms)

    def convert(self, value: graph.Value, of: ElementType) -> graph.Value:
        if value.type == of:
            return value
        return self.append(graph.Pointwise, value.shape, of, value, function="convert")

    def constant(self, array: np.ndarray, of: ElementType) -> graph.Value:
        array = np.asarray(array).astype(of.dtype)
        return self.append(graph.Constant, array.shape, of, array=array)

    def number(self, number: float, shape: Sequence[int], of: ElementType = INTEGER32) -> graph.Value:
        """Append an array of equal elements."""
        array = np.broadcast_to(np.array(number).astype(of.dtype), tuple(shape))
        return self.append(graph.Constant, shape, of, array=array)

    def iota(self, shape: Sequence[int], axis: int, of: ElementType = INTEGER32) -> graph.Value:
        return self.append(graph.Iota, shape, of, axis=axis)

    def broadcast(self, value: graph.Value, shape: Sequence[int], axes: Sequence[int] = ()) -> graph.Value:
        """Append a broadcast; dimension d of the value becomes axes[d]."""
        if value.shape == tuple(shape):
            return value
        return self.append(graph.Broadcast, shape, value.type, value, axes=tuple(axes))

    def reshape(self, value: graph.Value, *shape: int) -> graph.Value:
        return value if value.shape == shape else self.append(graph.Reshape, shape, value.type, value)

    def transpose(self, value: graph.Value, *order: int) -> graph.Value:
        if order == tuple(range(value.rank)):
            return value
        return self.append(graph.Transpose, [value.shape[d] for d in order], value.type, value, order=order)

    def part(self, value: graph.Value, axis: int, start: int, end: int, step: int = 1) -> graph.Value:
        """Append a slice along one dimension."""
        starts, counts, steps = [0] * value.rank, list(value.shape), [1] * value.rank
        starts[axis], counts[axis], steps[axis] = start, -(-(end - start) // step), step
        return self.slice(value, starts, counts, steps)

    def slice(
        self, value: graph.Value, starts: Sequence[int], counts: Sequence[int], steps: Sequence[int]
    ) -> graph.Value:
        """Append a slice of `counts` elements from `starts` on, `steps` apart."""
        sides = zip(starts, counts, steps, strict=True)
        ends = tuple(start + max(0, (count - 1) * step + 1) for start, count, step in sides)
        fields = {"starts": tuple(starts), "ends": ends, "steps": tuple(steps)}
        return self.append(graph.StridedSlice, counts, value.type, value, **fields)

    def reverse(self, value: graph.Value, *axes: int) -> graph.Value:
        return self.append(graph.Reverse, value.shape, value.type, value, axes=axes)

    def concatenate(self, values: Sequence[graph.Value], axis: int) -> graph.Value:
        if len(values) == 1:
            return values[0]
        shape = list(values[0].shape)
        shape[axis] = sum(value.shape[axis] for value in values)
        return self.append(graph.Concatenate, shape, values[0].type, *values, axis=axis)

    def pad(
        self, value: graph.Value, number: _Operand, low: Sequence[int], high: Sequence[int], interior: Sequence[int]
    ) -> graph.Value:
        """Append the padding of a value with a number."""
        if not any((*low, *high, *interior)):
            return value
        number = number if isinstance(number, graph.Value) else self.number(number, (), value.type)
        sides = zip(value.shape, low, high, interior, strict=True)
        shape = [a + b + n + max(0, n - 1) * between for n, a, b, between in sides]
        fields = {"low": tuple(low), "high": tuple(high), "interior": tuple(interior)}
        return self.append(graph.Pad, shape, value.type, value, number, **fields)

    def inline(self, body: graph.Graph, *values: graph.Value) -> tuple[graph.Value, ...]:
        """Append a block of single elements, such as a reduction's, on arrays of one shape; return its results.

        Values of enclosing blocks that it reads are broadcast.
        """
        shape = values[0].shape
        known = dict(zip(body.arguments, values, strict=True))

        def wide(value: graph.Value) -> graph.Value:
            if value not in known:
                known[value] = self.broadcast(value, shape)
            return known[value]

        for operation in body.operations:
            results = tuple(graph.Value(shape, result.type) for result in operation.results)
            if isinstance(operation, graph.Constant):
                array = np.broadcast_to(operation.array, shape)
                self.operations.append(replace(operation, results=results, array=array))
            elif isinstance(operation, graph.Broadcast | graph.Reshape):
                known[operation.result] = wide(operation.operands[0])
                continue
            else:
                operands = tuple(wide(operand) for operand in operation.operands)
                self.operations.append(replace(operation, results=results, operands=operands))
            known.update(zip(operation.results, results, strict=True))
        return tuple(wide(value) for value in body.results)
