"""Removal of operations without use, and of repeated operations."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace

from neuroncore_rtl.frontends.xla.graph.cloning import rebuilt, renamed
from neuroncore_rtl.frontends.xla.graph.operations import Constant, Graph, Operation, Value

__all__ = ["merge_equal", "numbered", "remove_unused"]


def merge_equal(block: Graph) -> Graph:
    """Return the block with one operation for those of equal kind, operands and attributes."""
    return _merge(block, {}, {})


def _merge(block: Graph, found: dict[tuple, tuple[Value, ...]], same: dict[Value, Value]) -> Graph:
    operations = []
    for operation in block.operations:
        operation = rebuilt(operation, same, lambda inner: _merge(inner, dict(found), dict(same)))
        key = _key(operation, {})
        if key in found:
            same.update(zip(operation.results, found[key], strict=True))
            continue
        found[key] = operation.results
        operations.append(operation)
    return replace(block, operations=operations, results=renamed(block.results, same))


def _key(operation: Operation, names: Mapping[Value, int]) -> tuple:
    """Return what equal operations have in common; `names` are those of values of blocks around it."""
    kinds = _kinds(operation.results)
    if isinstance(operation, Constant):
        array = operation.array
        some = array[(slice(0, 1),) * array.ndim] if operation.splat is not None and array.ndim else array
        return Constant, kinds, some.tobytes(), some.shape
    attributes = tuple(
        repr(value)
        for one in fields(operation)
        if one.name not in ("operands", "results", "source", "branches")
        and not isinstance(value := getattr(operation, one.name), Graph)
    )
    blocks = tuple(_block_key(block, names) for block in operation.blocks)
    return type(operation), _named(operation.operands, names), kinds, attributes, blocks


def _block_key(block: Graph, names: Mapping[Value, int]) -> tuple:
    inner, keys = dict(names), []
    for values, operation in ((block.arguments, None), *((one.results, one) for one in block.operations)):
        keys.append(_key(operation, inner) if operation else _kinds(values))
        for value in values:
            inner[value] = len(inner)
    return *keys, _named(block.results, inner)


def _named(values: Sequence[Value], names: Mapping[Value, int]) -> tuple:
    return tuple(names.get(value, value) for value in values)


def _kinds(values: Sequence[Value]) -> tuple:
    return tuple((value.shape, value.type) for value in values)


def numbered(block: Graph, names: Mapping[Value, int], ids: dict[tuple, int]) -> dict[Value, int]:
    """Return numbers of a block's values, the same for equal ones; `names` has the arguments', `ids` the others'."""
    found = dict(names)
    for operation in block.operations:
        key = _key(operation, found)
        found.update((value, ids.setdefault((key, n), len(ids))) for n, value in enumerate(operation.results))
    return found


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
