"""Emission of a block: its passes in order."""

from collections.abc import Callable
from typing import Any

from neuroncore_rtl.frontends.xla.emit.control import emit_case, emit_while
from neuroncore_rtl.frontends.xla.emit.emission import Emission, is_view
from neuroncore_rtl.frontends.xla.emit.fused import emit_pass
from neuroncore_rtl.frontends.xla.emit.moves import (
    emit_bitcast,
    emit_concatenate,
    emit_convolution,
    emit_gather_rows,
    emit_pad,
    emit_scatter_rows,
)
from neuroncore_rtl.frontends.xla.emit.pass_plan import PassPlan
from neuroncore_rtl.frontends.xla.emit.plan import planned
from neuroncore_rtl.frontends.xla.emit.products import ChipProduct
from neuroncore_rtl.frontends.xla.emit.sorting import emit_sort_rows
from neuroncore_rtl.frontends.xla.emit.streamed_products import emit_dot
from neuroncore_rtl.frontends.xla.fuse.passes import passes_of
from neuroncore_rtl.frontends.xla.graph import operations as graph
from neuroncore_rtl.frontends.xla.graph.operations import Graph, Operation
from neuroncore_rtl.frontends.xla.refusal import Refused, refusing_at
from neuroncore_rtl.kernels.source import override_source

__all__ = ["EMITTERS", "emit_block"]

Emitter = Callable[[Emission, Any], None]
EMITTERS: dict[type[Operation], Emitter] = {
    graph.Bitcast: emit_bitcast,
    graph.Branches: lambda emission, case: emit_case(emission, case, emit_block),
    graph.Concatenate: emit_concatenate,
    graph.Convolution: emit_convolution,
    graph.Dot: emit_dot,
    graph.GatherRows: emit_gather_rows,
    graph.Pad: emit_pad,
    graph.ScatterRows: emit_scatter_rows,
    graph.SortRows: emit_sort_rows,
    graph.While: lambda emission, loop: emit_while(emission, loop, emit_block),
}
"""Emitters of operations that are no part of a pass."""

_SHARE = 8
"""Tiles of reduced rows for which SBUF must have room."""


def emit_block(emission: Emission, block: Graph) -> None:
    """Append the operations of a block; its arguments have tensors. Refused, with the line, without an emitter."""
    emission.learn(block)
    outside, emission.owned = emission.owned, emission.owned.intersection(block.arguments)
    most = emission.program.config.sbuf_bytes // (4 * _SHARE)
    passes = passes_of(block, emission.makers, most)
    plans = planned(emission, passes, block.results)
    for one in passes:
        if not any(value.size for operation in one.operations for value in operation.results):
            continue
        plan = plans[one]
        if one.is_fused:
            emit_pass(emission, one, plan)
            continue
        (operation,) = one.operations
        if is_view(operation) or isinstance(operation, graph.Constant | graph.Iota):
            continue
        if type(operation) not in EMITTERS:
            kind = getattr(operation, "function", type(operation).__name__)
            raise Refused(f"operations must be of docs/jax.md's table, not {kind}", operation.source)
        if isinstance(operation, graph.Dot) and plan.on_chip:
            _emit_product(emission, operation, plan)
            continue
        with refusing_at(operation.source), override_source(operation.source):
            EMITTERS[type(operation)](emission, operation)
    emission.owned = outside


def _emit_product(emission: Emission, dot: graph.Dot, plan: PassPlan) -> None:
    """Append a product on chip, or let its reader ask for it."""
    kept, stored = plan.kept.get(dot.result), dot.result in plan.stored
    product = ChipProduct(emission, dot, turned=plan.turned, kept=kept, stored=stored, unit=plan.unit)
    product.home.pending, product.home.is_stored = product, False
    if not plan.deferred:
        product.finish()
