"""Copies of blocks with new values, for passes that need a block more than once or without an argument."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace

from neuroncore_rtl.frontends.xla.graph.operations import Graph, Operation, Value

__all__ = ["cloned", "cloned_operations"]


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
        inner = {
            one.name: cloned(value, same) if isinstance(value, Graph) else tuple(cloned(each, same) for each in value)
            for one in fields(operation)
            if isinstance(value := getattr(operation, one.name), Graph) or one.name == "branches"
        }
        results = tuple(Value(value.shape, value.type) for value in operation.results)
        operands = tuple(same.get(value, value) for value in operation.operands)
        to.append(replace(operation, operands=operands, results=results, **inner))
        same.update(zip(operation.results, results, strict=True))
    return tuple(same.get(value, value) for value in block.results)
