"""Text of a graph, a line per operation."""

from collections.abc import Iterator
from dataclasses import fields

import numpy as np

from neuroncore_rtl.frontends.xla.graph.operations import Graph, Operation, Value
from neuroncore_rtl.kernels.tiling.phases import WindowShape

__all__ = ["graph_text"]

_BASE = frozenset(one.name for one in fields(Operation))


def graph_text(block: Graph) -> str:
    """Return the text of a block: values are numbered in the order of their definition."""
    return "\n".join(_lines(block, {}, ""))


def _lines(block: Graph, names: dict[Value, str], indent: str) -> Iterator[str]:
    yield f"{indent}arguments {', '.join(f'{_define(value, names)}: {value}' for value in block.arguments)}"
    for operation in block.operations:
        attributes = "".join(f" {name}={text}" for name, text in _attributes(operation))
        operands = ", ".join(names.get(value, "?") for value in operation.operands)
        results = ", ".join(f"{_define(value, names)}: {value}" for value in operation.results)
        kind = getattr(operation, "function", type(operation).__name__.lower())
        yield f"{indent}{results} = {kind}({operands}){attributes}  # {operation.source}"
        for inner in operation.blocks:
            yield from _lines(inner, names, indent + "    ")
    yield f"{indent}results {', '.join(names.get(value, '?') for value in block.results)}"


def _define(value: Value, names: dict[Value, str]) -> str:
    names[value] = f"%{len(names)}"
    return names[value]


def _attributes(operation: Operation) -> Iterator[tuple[str, str]]:
    for one in fields(operation):
        value = getattr(operation, one.name)
        if one.name in _BASE or one.name in ("function", "branches") or isinstance(value, Graph):
            continue
        if isinstance(value, WindowShape):
            yield from ((name.name, str(getattr(value, name.name)).replace(" ", "")) for name in fields(value))
        elif isinstance(value, np.ndarray):
            splat = getattr(operation, "splat", None)
            yield one.name, f"{splat}" if splat is not None else np.array2string(value.reshape(-1), threshold=8)
        else:
            yield one.name, str(value).replace(" ", "")
