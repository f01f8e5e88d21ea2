"""Expansion: operations that no emitter has become simpler ones of the graph, a file each kind.

An expander appends operations to a builder and returns the values that stand for the results.
"""

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

from neuroncore_rtl.frontends.xla.expand.indexing import expand_dynamic_slice, expand_dynamic_update, expand_gather
from neuroncore_rtl.frontends.xla.expand.scattering import expand_scatter
from neuroncore_rtl.frontends.xla.expand.sorting import expand_sort
from neuroncore_rtl.frontends.xla.graph import operations as graph
from neuroncore_rtl.frontends.xla.graph.builder import Builder
from neuroncore_rtl.frontends.xla.graph.operations import Block, Operation, Value

__all__ = ["EXPANDERS", "expanded"]

Expander = Callable[[Builder, Any], tuple[Value, ...] | None]
EXPANDERS: dict[type[Operation], Expander] = {
    graph.DynamicSlice: expand_dynamic_slice,
    graph.DynamicUpdate: expand_dynamic_update,
    graph.Gather: expand_gather,
    graph.Scatter: expand_scatter,
    graph.Sort: expand_sort,
}
"""Expanders by the kind of operation; None leaves the operation as it is."""


def expanded(block: Block) -> Block:
    """Return the block with simpler operations, also in the blocks inside it."""
    return _expand(block, {})


def _expand(block: Block, same: dict[Value, Value]) -> Block:
    operations: list[Operation] = []
    for operation in block.operations:
        _append(operations, operation, same)
    return replace(block, operations=operations, results=tuple(same.get(one, one) for one in block.results))


def _append(operations: list[Operation], operation: Operation, same: dict[Value, Value]) -> None:
    inner = {
        one.name: _expand(value, same) if isinstance(value, Block) else tuple(_expand(each, same) for each in value)
        for one in fields(operation)
        if isinstance(value := getattr(operation, one.name), Block) or one.name == "branches"
    }
    operation = replace(operation, operands=tuple(same.get(one, one) for one in operation.operands), **inner)
    expander = EXPANDERS.get(type(operation))
    builder = Builder(operation.source)
    results = expander(builder, operation) if expander else None
    if results is None:
        operations.append(operation)
        return
    for one in builder.operations:
        _append(operations, one, same)
    same.update(zip(operation.results, (same.get(one, one) for one in results), strict=True))
