"""Verifier of a graph: every value is defined once and before its use, and shapes and types fit."""

from neuroncore_rtl.frontends.xla.graph import operations as graph
from neuroncore_rtl.frontends.xla.graph.operations import Graph, Operation, Value

__all__ = ["verify"]


def verify(block: Graph, known: frozenset[Value] = frozenset()) -> None:
    """Raise AssertionError if a pass has broken the graph; the message has the operation and its line."""
    defined = {*known, *block.arguments}
    for operation in block.operations:
        missing = [value for value in operation.operands if value not in defined]
        _require(not missing, operation, f"operands must be defined before, not {[str(one) for one in missing]}")
        for inner in operation.blocks:
            verify(inner, frozenset(defined))
        _check(operation)
        again = defined.intersection(operation.results)
        _require(not again, operation, f"results must be new values, not {[str(one) for one in again]}")
        defined.update(operation.results)
    assert defined.issuperset(block.results), "results of a block must be defined in it or around it"


def _require(holds: bool, operation: Operation, rule: str) -> None:
    assert holds, f"{type(operation).__name__} ({operation.source}): {rule}"


def _check(operation: Operation) -> None:
    results, shapes = operation.results, [value.shape for value in operation.operands]
    match operation:
        case graph.Pointwise():
            _require({*shapes} == {results[0].shape}, operation, f"shapes must be equal, not {shapes}")
        case graph.Broadcast(axes=axes):
            found = tuple(results[0].shape[axis] for axis in axes)
            legal = all(n in (1, m) for n, m in zip(shapes[0], found, strict=True))
            _require(legal, operation, f"{shapes[0]} must broadcast along {axes} to {results[0].shape}")
        case graph.Reshape():
            _require(operation.operands[0].size == results[0].size, operation, "sizes must be equal")
        case graph.Transpose(order=order):
            found = tuple(shapes[0][axis] for axis in order)
            _require(found == results[0].shape, operation, f"shape must be {found}, not {results[0].shape}")
        case graph.StridedSlice(starts=starts, ends=ends):
            bounds = [*zip(starts, ends, shapes[0], strict=True)]
            legal = all(0 <= start <= end <= extent for start, end, extent in bounds)
            _require(legal, operation, f"starts and ends must be within the extents, not {bounds}")
        case graph.Concatenate(axis=axis):
            total = sum(shape[axis] for shape in shapes)
            _require(total == results[0].shape[axis], operation, f"extent must be {total}")
        case graph.Dot(contract=(left, right)):
            pairs = [(shapes[0][a], shapes[1][b]) for a, b in zip(left, right, strict=True)]
            _require(all(a == b for a, b in pairs), operation, f"contracted extents must be equal, not {pairs}")
