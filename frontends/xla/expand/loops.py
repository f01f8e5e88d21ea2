"""Loops: what does not change is read from outside, equal counters are one, few rounds become operations."""

from neuroncore_rtl.frontends.xla.graph.builder import Builder
from neuroncore_rtl.frontends.xla.graph.cloning import cloned, cloned_operations
from neuroncore_rtl.frontends.xla.graph.loops import counted, integer, step_of
from neuroncore_rtl.frontends.xla.graph.operations import Block, Value, While

__all__ = ["expand_while"]

_ROUNDS = 8
"""Rounds that become operations, if the body is not large."""
_OPERATIONS = 1024
"""Maximum operations that a loop becomes."""
_FEW = 128
"""Operations that a loop becomes for any number of rounds."""


def expand_while(builder: Builder, loop: While) -> tuple[Value, ...] | None:
    """Return the results of the rounds one after another, or of a simpler loop; None if it is as simple."""
    counter = counted(loop, builder.makers)
    if counter is not None and counter.rounds is not None and _is_short(counter.rounds, loop.body):
        return _unrolled(builder, loop, counter.place, [counter.start or 0, counter.step], counter.rounds)
    return _simpler(builder, loop)


def _is_short(rounds: int, body: Block) -> bool:
    return rounds * _size(body) <= (_OPERATIONS if rounds <= _ROUNDS else _FEW)


def _size(block: Block) -> int:
    return sum(1 + sum(map(_size, one.blocks)) for one in block.operations)


def _unrolled(builder: Builder, loop: While, place: int, along: list[int], rounds: int) -> tuple[Value, ...]:
    values, (start, step) = list(loop.operands), along
    for number in range(1, rounds + 1):
        known = dict(zip(loop.body.arguments, values, strict=True))
        values = list(cloned_operations(loop.body, known, builder.operations))
        values[place] = builder.number(start + number * step, values[place].shape, values[place].type)
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
        start, step = integer(operand, builder.makers), step_of(body, place, builder.makers)
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
