"""Expansion: operations that no emitter has become simpler ones of the graph, a file each kind.

An expander appends operations to a builder and returns the values that stand for the results.
"""

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

from neuroncore_rtl.frontends.xla.expand.convolution import expand_convolution
from neuroncore_rtl.frontends.xla.expand.indexing import expand_dynamic_slice, expand_dynamic_update, expand_gather
from neuroncore_rtl.frontends.xla.expand.products import expand_dot
from neuroncore_rtl.frontends.xla.expand.reductions import expand_reduce
from neuroncore_rtl.frontends.xla.expand.scattering import expand_scatter
from neuroncore_rtl.frontends.xla.expand.sorting import expand_sort
from neuroncore_rtl.frontends.xla.expand.windows import expand_reduce_window, expand_select_and_scatter
from neuroncore_rtl.frontends.xla.graph import operations as graph
from neuroncore_rtl.frontends.xla.graph.builder import Builder
from neuroncore_rtl.frontends.xla.graph.operations import Block, Operation, Value
from neuroncore_rtl.spec.config import Config

__all__ = ["EXPANDERS", "expanded"]

Expander = Callable[[Builder, Any], tuple[Value, ...] | None]
EXPANDERS: dict[type[Operation], Expander] = {
    graph.DynamicSlice: expand_dynamic_slice,
    graph.DynamicUpdate: expand_dynamic_update,
    graph.Gather: expand_gather,
    graph.Scatter: expand_scatter,
    graph.Sort: expand_sort,
    graph.Convolution: expand_convolution,
    graph.Dot: expand_dot,
    graph.Reduce: expand_reduce,
    graph.ReduceWindow: expand_reduce_window,
    graph.SelectAndScatter: expand_select_and_scatter,
}
"""Expanders by the kind of operation; None leaves the operation as it is."""


def expanded(block: Block, config: Config) -> Block:
    """Return the block with simpler operations for a machine, also in the blocks inside it."""
    return _expand(block, config, {})


def _expand(block: Block, config: Config, same: dict[Value, Value]) -> Block:
    operations: list[Operation] = []
    for operation in block.operations:
        _append(operations, operation, config, same)
    return replace(block, operations=operations, results=tuple(same.get(one, one) for one in block.results))


def _append(operations: list[Operation], operation: Operation, config: Config, same: dict[Value, Value]) -> None:
    inner = {
        one.name: _expand(value, config, same)
        if isinstance(value, Block)
        else tuple(_expand(each, config, same) for each in value)
        for one in fields(operation)
        if isinstance(value := getattr(operation, one.name), Block) or one.name == "branches"
    }
    operation = replace(operation, operands=tuple(same.get(one, one) for one in operation.operands), **inner)
    expander = EXPANDERS.get(type(operation))
    builder = Builder(operation.source, config)
    results = expander(builder, operation) if expander else None
    if results is None:
        operations.append(operation)
        return
    for one in builder.operations:
        _append(operations, one, config, same)
    same.update(zip(operation.results, (same.get(one, one) for one in results), strict=True))
