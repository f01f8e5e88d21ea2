"""Emission of a block: its passes in order."""

from collections.abc import Callable, Iterable
from typing import Any

from neuroncore_rtl.frontends.xla.emit.control import emit_case, emit_while
from neuroncore_rtl.frontends.xla.emit.convolution import emit_convolution
from neuroncore_rtl.frontends.xla.emit.emission import Emission
from neuroncore_rtl.frontends.xla.emit.fused import emit_pass
from neuroncore_rtl.frontends.xla.emit.moves import emit_concatenate, emit_pad
from neuroncore_rtl.frontends.xla.emit.products import emit_dot
from neuroncore_rtl.frontends.xla.emit.rows import emit_gather_rows, emit_scatter_rows
from neuroncore_rtl.frontends.xla.emit.sorting import emit_sort_rows
from neuroncore_rtl.frontends.xla.fuse.passes import Pass, passes_of
from neuroncore_rtl.frontends.xla.fuse.placement import placed_root
from neuroncore_rtl.frontends.xla.graph import operations as graph
from neuroncore_rtl.frontends.xla.graph.operations import Graph, Operation, Value
from neuroncore_rtl.frontends.xla.refusal import Refused
from neuroncore_rtl.kernels.program.source import override_source

__all__ = ["EMITTERS", "emit_block"]

Emitter = Callable[[Emission, Any], None]
EMITTERS: dict[type[Operation], Emitter] = {
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

_VIEWS = (
    graph.Broadcast,
    graph.Reshape,
    graph.Transpose,
    graph.StridedSlice,
    graph.Reverse,
    graph.Constant,
    graph.Iota,
)
_SHARE = 8
"""Tiles of reduced rows for which SBUF must have room."""


def emit_block(emission: Emission, block: Graph) -> None:
    """Append the operations of a block; its arguments have tensors. Refused, with the line, without an emitter."""
    emission.learn(block)
    outside, emission.owned = emission.owned, emission.owned.intersection(block.arguments)
    most = emission.program.config.sbuf_bytes // (4 * _SHARE)
    passes = passes_of(block, emission.makers, most)
    used = {*_stored_values(emission, passes, block.results)}
    for one in passes:
        if not any(value.size for operation in one.operations for value in operation.results):
            continue
        if one.is_fused:
            emit_pass(emission, one, [value for value in one.places if value in used])
            continue
        (operation,) = one.operations
        if isinstance(operation, _VIEWS):
            continue
        if not any(value.size for value in operation.results):
            for value in operation.results:
                emission.new(value)
            continue
        if isinstance(operation, graph.Bitcast) and operation.operands[0].type.bits == operation.result.type.bits:
            continue
        if type(operation) not in EMITTERS:
            kind = getattr(operation, "function", type(operation).__name__)
            raise Refused(f"operations must be of docs/jax.md's table, not {kind}", operation.source)
        try:
            with override_source(operation.source):
                EMITTERS[type(operation)](emission, operation)
        except Refused as refusal:
            if refusal.source is None:
                raise Refused(str(refusal), operation.source) from None
            raise
    emission.owned = outside


def _stored_values(emission: Emission, passes: Iterable[Pass], results: Iterable[Value]) -> Iterable[Value]:
    """Yield the values that must be in HBM: results, and operands of other passes."""
    for value in results:
        yield _root(emission, value)
    for one in passes:
        for operation in one.operations:
            for value in _operands_of(operation):
                root = _root(emission, value)
                if root not in one.places:
                    yield root


def _operands_of(operation: Operation) -> Iterable[Value]:
    yield from operation.operands
    for block in operation.blocks:
        yield from block.results
        for inner in block.operations:
            yield from _operands_of(inner)


def _root(emission: Emission, value: Value) -> Value:
    return placed_root(value, (None,) * value.rank, emission.makers)[0]
