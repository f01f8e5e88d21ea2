"""Sorts of rows, by comparators that are blocks of functions of elements."""

from collections.abc import Sequence

from neuroncore_rtl.frontends.xla.emit.emission import Emission
from neuroncore_rtl.frontends.xla.emit.functions import append_function
from neuroncore_rtl.frontends.xla.fuse.placement import number_of
from neuroncore_rtl.frontends.xla.graph import operations as graph
from neuroncore_rtl.frontends.xla.refusal import Refused
from neuroncore_rtl.kernels.library.functions.lanes import LaneOperand, Lanes
from neuroncore_rtl.kernels.library.sort import sort_rows
from neuroncore_rtl.kernels.program import Tensor
from neuroncore_rtl.spec.formats import UINT8

__all__ = ["emit_sort_rows"]


def emit_sort_rows(emission: Emission, sort: graph.SortRows) -> None:
    """Append the sort of all rows."""
    operands = [emission.dense(one) for one in sort.operands]

    def is_before(some: Sequence[Tensor], others: Sequence[Tensor]) -> Tensor:
        return _compared(emission, sort.body, [one for pair in zip(some, others, strict=True) for one in pair])

    sort_rows(emission.program, [*map(emission.new, sort.results)], operands, is_before)


def _compared(emission: Emission, body: graph.Graph, operands: Sequence[Tensor]) -> Tensor:
    """Append the result of a comparator on pairs of tiles."""
    lanes = Lanes(emission.program, operands[0].shape, operands[0].partitions)
    known: dict[graph.Value, LaneOperand] = dict(zip(body.arguments, operands, strict=True))
    for operation in body.operations:
        if isinstance(operation, graph.Constant):
            continue
        values = [known[one] if one in known else _number(emission, one, operation) for one in operation.operands]
        if isinstance(operation, graph.Broadcast | graph.Reshape):
            (known[operation.result],) = values
        elif isinstance(operation, graph.Pointwise):
            dst = known[operation.result] = lanes.new(operation.result.type.format, operation.function)
            append_function(lanes, operation, dst, *values)
        else:
            kind = type(operation).__name__
            raise Refused(f"comparators of a sort must consist of functions of elements, not {kind}", operation.source)
    return lanes.tile(known[body.results[0]], UINT8)


def _number(emission: Emission, value: graph.Value, operation: graph.Operation) -> LaneOperand:
    if (number := number_of(value, emission.makers)) is None:
        raise Refused("comparators of a sort must read nothing but its elements and constants", operation.source)
    return number
