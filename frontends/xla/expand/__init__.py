"""Expansion: operations that no emitter has become simpler ones of the graph, a file each kind.

An expander appends operations to a builder and returns the values that stand for the results.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from neuroncore_rtl.frontends.xla.expand.control import expand_case, expand_while
from neuroncore_rtl.frontends.xla.expand.convolution import expand_convolution
from neuroncore_rtl.frontends.xla.expand.elementwise import expand_pointwise
from neuroncore_rtl.frontends.xla.expand.indexing import expand_dynamic_slice, expand_dynamic_update, expand_gather
from neuroncore_rtl.frontends.xla.expand.products import expand_dot
from neuroncore_rtl.frontends.xla.expand.random import expand_random_bits
from neuroncore_rtl.frontends.xla.expand.reductions import expand_reduce
from neuroncore_rtl.frontends.xla.expand.scattering import expand_scatter
from neuroncore_rtl.frontends.xla.expand.sorting import expand_sort
from neuroncore_rtl.frontends.xla.expand.windows import expand_reduce_window, expand_select_and_scatter
from neuroncore_rtl.frontends.xla.graph import operations as graph
from neuroncore_rtl.frontends.xla.graph.builder import Builder
from neuroncore_rtl.frontends.xla.graph.cloning import rebuilt, renamed
from neuroncore_rtl.frontends.xla.graph.operations import Graph, Operation, Value
from neuroncore_rtl.spec.config import Config

__all__ = ["EXPANDERS", "expanded"]

Expander = Callable[[Builder, Any], tuple[Value, ...] | None]
EXPANDERS: dict[type[Operation], Expander] = {
    graph.Convolution: expand_convolution,
    graph.Dot: expand_dot,
    graph.DynamicSlice: expand_dynamic_slice,
    graph.DynamicUpdate: expand_dynamic_update,
    graph.Gather: expand_gather,
    graph.Pointwise: expand_pointwise,
    graph.RandomBits: expand_random_bits,
    graph.Reduce: expand_reduce,
    graph.ReduceWindow: expand_reduce_window,
    graph.Scatter: expand_scatter,
    graph.SelectAndScatter: expand_select_and_scatter,
    graph.Sort: expand_sort,
    graph.Branches: expand_case,
    graph.While: expand_while,
}
"""Expanders by the kind of operation; None leaves the operation as it is."""


def expanded(block: Graph, config: Config) -> Graph:
    """Return the block with simpler operations for a machine, also in the blocks inside it."""
    return _Expansion(config).block(block)


@dataclass
class _Expansion:
    config: Config
    same: dict[Value, Value] = field(default_factory=dict)
    makers: dict[Value, Operation] = field(default_factory=dict)

    def block(self, block: Graph) -> Graph:
        operations: list[Operation] = []
        for operation in block.operations:
            self._append(operations, operation)
        return replace(block, operations=operations, results=renamed(block.results, self.same))

    def _append(self, operations: list[Operation], operation: Operation) -> None:
        operation = rebuilt(operation, self.same, self.block)
        expander = EXPANDERS.get(type(operation))
        builder = Builder(operation.source, self.config, self.makers)
        results = expander(builder, operation) if expander else None
        if results is None:
            operations.append(operation)
            self.makers.update(dict.fromkeys(operation.results, operation))
            return
        for one in builder.operations:
            self._append(operations, one)
        self.same.update(zip(operation.results, renamed(results, self.same), strict=True))
