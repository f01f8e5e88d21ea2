"""Removal of operations without use, and of repeated operations."""

from dataclasses import fields, replace

from neuroncore_rtl.frontends.xla.graph.cloning import rebuilt, renamed
from neuroncore_rtl.frontends.xla.graph.operations import Constant, Graph, Operation, Value

__all__ = ["merge_equal", "remove_unused"]


def merge_equal(block: Graph) -> Graph:
    """Return the block with one operation for those of equal kind, operands and attributes."""
    return _merge(block, {}, {})


def _merge(block: Graph, found: dict[tuple, tuple[Value, ...]], same: dict[Value, Value]) -> Graph:
    operations = []
    for operation in block.operations:
        operation = rebuilt(operation, same, lambda inner: _merge(inner, dict(found), dict(same)))
        key = None if operation.blocks else _key(operation)
        if key is not None and key in found:
            same.update(zip(operation.results, found[key], strict=True))
            continue
        if key is not None:
            found[key] = operation.results
        operations.append(operation)
    return replace(block, operations=operations, results=renamed(block.results, same))


def _key(operation: Operation) -> tuple:
    kinds = tuple((value.shape, value.type) for value in operation.results)
    if isinstance(operation, Constant):
        array = operation.array
        some = array[(slice(0, 1),) * array.ndim] if operation.splat is not None and array.ndim else array
        return Constant, kinds, some.tobytes(), some.shape
    attributes = tuple(
        repr(getattr(operation, one.name))
        for one in fields(operation)
        if one.name not in ("operands", "results", "source")
    )
    return type(operation), operation.operands, kinds, attributes


def remove_unused(block: Graph) -> None:
    """Remove operations with results that no other operation reads, in the block and the blocks inside it."""
    _remove(block, set(block.results))


def _remove(block: Graph, used: set[Value]) -> None:
    kept = []
    for operation in reversed(block.operations):
        if used.isdisjoint(operation.results):
            continue
        kept.append(operation)
        used.update(operation.operands)
        for inner in operation.blocks:
            used.update(inner.results)
            _remove(inner, used)
    block.operations[:] = kept[::-1]
