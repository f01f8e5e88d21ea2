"""Copies of operations and blocks with other values, for passes that replace some or need a block more than once."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace

from neuroncore_rtl.frontends.xla.graph.operations import Graph, Operation, Value

__all__ = ["cloned", "cloned_operations", "rebuilt", "renamed"]


def renamed(values: Sequence[Value], same: Mapping[Value, Value]) -> tuple[Value, ...]:
    """Return values, some of them replaced."""
    return tuple(same.get(value, value) for value in values)


def rebuilt(operation: Operation, same: Mapping[Value, Value], change: Callable[[Graph], Graph], **others) -> Operation:
    """Return a copy of an operation with operands replaced, blocks inside it changed, and other fields."""
    for one in fields(operation):
        value = getattr(operation, one.name)
        if isinstance(value, Graph):
            others[one.name] = change(value)
        elif one.name == "branches":
            others[one.name] = tuple(map(change, value))
    return replace(operation, operands=renamed(operation.operands, same), **others)


def cloned(
    block: Graph,
    known: Mapping[Value, Value],
    arguments: Sequence[int] | None = None,
    results: Sequence[int] | None = None,
) -> Graph:
    """Return a copy of a block.

    Arguments:
        block: the block.
        known: values that the copy has in place of others; may be arguments of the block.
        arguments: places of the arguments that it keeps; None for all.
        results: places of the results that it keeps; None for all.
    """
    own = block.arguments if arguments is None else [block.arguments[place] for place in arguments]
    fresh = {value: Value(value.shape, value.type) for value in own}
    operations: list[Operation] = []
    known = {**{old: fresh.get(new, new) for old, new in known.items()}, **fresh}
    found = cloned_operations(block, known, operations)
    found = found if results is None else tuple(found[place] for place in results)
    return Graph(arguments=tuple(fresh.values()), operations=operations, results=found)


def cloned_operations(block: Graph, known: Mapping[Value, Value], to: list[Operation]) -> tuple[Value, ...]:
    """Append copies of a block's operations and return its results; `known` stands for its arguments."""
    same = dict(known)
    for operation in block.operations:
        results = tuple(Value(value.shape, value.type) for value in operation.results)
        to.append(rebuilt(operation, same, lambda inner: cloned(inner, same), results=results))
        same.update(zip(operation.results, results, strict=True))
    return renamed(block.results, same)
