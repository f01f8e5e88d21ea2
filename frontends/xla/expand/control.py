"""Loops and branches.

Of a loop, what does not change is read from outside, and equal counters are one; few rounds become operations. Small
branches are all computed, and the results selected.
"""

from neuroncore_rtl.frontends.xla.fuse.placement import is_transparent
from neuroncore_rtl.frontends.xla.graph.builder import Builder
from neuroncore_rtl.frontends.xla.graph.cloning import cloned, cloned_operations
from neuroncore_rtl.frontends.xla.graph.loops import Counted, counter_of, counter_step, known_integer
from neuroncore_rtl.frontends.xla.graph.operations import (
    Branches,
    Graph,
    Operation,
    Pointwise,
    Reshape,
    StridedSlice,
    Value,
    While,
)
from neuroncore_rtl.frontends.xla.graph.types import UNSIGNED32

__all__ = ["expand_case", "expand_while"]

_COST = 512
"""Maximum cost of the operations that a loop becomes: functions of few elements cost 1."""
_OTHER = 16
"""Cost of an operation that starts a pass of its own, which gains little."""
_ELEMENTS = 1 << 16
"""Elements of a result for each unit of its cost."""
_SMALL = 1 << 10
"""Maximum elements of a branch's result; a branch of the controller is faster for more."""
_OPERATIONS = 64
"""Maximum operations of all branches."""


def _is_light(operation: Operation) -> bool:
    """Return whether an operation is a function of elements, or a view."""
    return isinstance(operation, Pointwise | Reshape | StridedSlice) or is_transparent(operation)


def expand_while(builder: Builder, loop: While) -> tuple[Value, ...] | None:
    """Return the results of the rounds one after another, or of a simpler loop; None if it is as simple."""
    counter = counter_of(loop, builder.makers)
    if counter is not None and counter.rounds is not None and counter.rounds * _cost(loop.body) <= _COST:
        return _unrolled(builder, loop, counter)
    return _simpler(builder, loop)


def _cost(block: Graph) -> int:
    """Return the cost of a block, roughly proportional to its instructions."""
    return sum(
        (1 if _is_light(one) else _OTHER) * (1 + max(value.size for value in one.results) // _ELEMENTS)
        + sum(map(_cost, one.blocks))
        for one in block.operations
    )


def _unrolled(builder: Builder, loop: While, counter: Counted) -> tuple[Value, ...]:
    values, place = list(loop.operands), counter.place
    for number in range(1, (counter.rounds or 0) + 1):
        known = dict(zip(loop.body.arguments, values, strict=True))
        values = list(cloned_operations(loop.body, known, builder.operations))
        now = (counter.start or 0) + number * counter.step
        values[place] = builder.number(now, values[place].shape, values[place].type)
    return tuple(values)


def _simpler(builder: Builder, loop: While) -> tuple[Value, ...] | None:
    """Return the results of a loop without the values that do not change or equal another one."""
    operands, body = loop.operands, loop.body
    known: dict[Value, Value] = {}
    places: list[int] = []
    results: dict[int, int] = {}
    counters: dict[tuple, int] = {}
    for place, operand in enumerate(operands):
        if body.results[place] is body.arguments[place]:
            known[loop.condition.arguments[place]] = known[body.arguments[place]] = operand
            continue
        start, step = known_integer(operand, builder.makers), counter_step(body, place, builder.makers)
        first = place
        if start is not None and step is not None:
            first = counters.setdefault((start, step, operand.type, operand.shape), place)
        if first == place:
            places.append(place)
        else:
            for block in (loop.condition, body):
                known[block.arguments[place]] = block.arguments[first]
        results[place] = places.index(first)
    if len(places) == len(operands):
        return None
    found = tuple(Value(operands[place].shape, operands[place].type) for place in places)
    builder.operations.append(
        While(
            operands=tuple(operands[place] for place in places),
            results=found,
            source=loop.source,
            condition=cloned(loop.condition, known, places),
            body=cloned(body, known, places, places),
        )
    )
    return tuple(found[results[place]] if place in results else operand for place, operand in enumerate(operands))


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
    operations = branch.operations
    values = [*branch.results, *(value for one in operations for value in one.results)]
    return all(map(_is_light, operations)) and all(value.size <= _SMALL for value in values)
