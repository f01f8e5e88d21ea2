"""Branches: small ones are all computed, and the results selected."""

from neuroncore_rtl.frontends.xla.fuse.placement import is_transparent
from neuroncore_rtl.frontends.xla.graph.builder import Builder
from neuroncore_rtl.frontends.xla.graph.cloning import cloned_operations
from neuroncore_rtl.frontends.xla.graph.operations import Branches, Graph, Pointwise, Reshape, StridedSlice, Value
from neuroncore_rtl.frontends.xla.graph.types import UNSIGNED32

__all__ = ["expand_case"]

_ELEMENTS = 1 << 10
"""Maximum elements of a result; a branch of the controller is faster for more."""
_OPERATIONS = 64
"""Maximum operations of all branches."""


def expand_case(builder: Builder, case: Branches) -> tuple[Value, ...] | None:
    """Return a selection among the results of all branches; None if they are large, or more than functions."""
    if not all(map(_is_small, case.branches)) or sum(len(one.operations) for one in case.branches) > _OPERATIONS:
        return None
    found = [cloned_operations(branch, {}, builder.operations) for branch in case.branches]
    # As an unsigned number, one out of range is none of the first branches.
    number = builder.convert(case.operands[0], UNSIGNED32)
    results = found[-1]
    for place, others in enumerate(found[:-1]):
        is_taken = builder.apply("equal", number, place)
        results = tuple(
            builder.apply("select", builder.broadcast(is_taken, one.shape), one, other)
            for one, other in zip(others, results, strict=True)
        )
    return results


def _is_small(branch: Graph) -> bool:
    return all(value.size <= _ELEMENTS for value in branch.results) and all(
        (isinstance(one, Pointwise | Reshape | StridedSlice) or is_transparent(one)) and one.result.size <= _ELEMENTS
        for one in branch.operations
    )
