"""Loops: what does not change is read from outside, equal counters are one, few rounds become operations."""

from neuroncore_rtl.frontends.xla.fuse.placement import is_transparent
from neuroncore_rtl.frontends.xla.graph.builder import Builder
from neuroncore_rtl.frontends.xla.graph.cloning import cloned, cloned_operations
from neuroncore_rtl.frontends.xla.graph.loops import Counted, counter_of, counter_step, known_integer
from neuroncore_rtl.frontends.xla.graph.operations import Graph, Pointwise, Reshape, StridedSlice, Value, While

__all__ = ["expand_while"]

_COST = 512
"""Maximum cost of the operations that a loop becomes: functions of few elements cost 1."""
_OTHER = 16
"""Cost of an operation that starts a pass of its own, which gains little."""
_ELEMENTS = 1 << 16
"""Elements of a result for each unit of its cost."""


def expand_while(builder: Builder, loop: While) -> tuple[Value, ...] | None:
    """Return the results of the rounds one after another, or of a simpler loop; None if it is as simple."""
    counter = counter_of(loop, builder.makers)
    if counter is not None and counter.rounds is not None and counter.rounds * _cost(loop.body) <= _COST:
        return _unrolled(builder, loop, counter)
    return _simpler(builder, loop)


def _cost(block: Graph) -> int:
    """Return the cost of a block, roughly proportional to its instructions."""
    return sum(
        (1 if isinstance(one, Pointwise | Reshape | StridedSlice) or is_transparent(one) else _OTHER)
        * (1 + max(value.size for value in one.results) // _ELEMENTS)
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
