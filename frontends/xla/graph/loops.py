"""Counted loops: a counter is less than a limit in each round, and the body adds a constant to it."""

from collections.abc import Mapping
from dataclasses import dataclass

from neuroncore_rtl.frontends.xla.graph.operations import Constant, Graph, Operation, Pointwise, Value, While

__all__ = ["Counted", "counter_of", "counter_step", "known_integer"]

_BEYOND = 1 << 31
"""A counter must be less, so that it does not wrap."""


@dataclass(frozen=True)
class Counted:
    """Counter of a loop.

    Arguments:
        place: its place among the operands.
        limit: a constant, or a value defined outside the loop.
        step: what each round adds, at least 1.
        start: its first value, if that is a constant.
    """

    place: int
    limit: int | Value
    step: int
    start: int | None

    @property
    def rounds(self) -> int | None:
        """Number of rounds, if start and limit are constants."""
        if self.start is None or isinstance(self.limit, Value):
            return None
        return max(0, -((self.start - self.limit) // self.step))


def known_integer(value: Value, makers: Mapping[Value, Operation]) -> int | None:
    """Return the integer that a value is, if it is one that is known."""
    maker = makers.get(value)
    known = isinstance(maker, Constant) and value.type.is_integer and value.size == 1
    return int(maker.array.reshape(-1)[0]) if known and isinstance(maker, Constant) else None


def counter_step(body: Graph, place: int, makers: Mapping[Value, Operation]) -> int | None:
    """Return the constant that a body adds to an argument, if that is all it does with it."""
    argument, result = body.arguments[place], body.results[place]
    inner = body.makers
    maker = inner.get(result)
    if not isinstance(maker, Pointwise) or maker.function != "add" or argument not in maker.operands:
        return None
    left, right = maker.operands
    return known_integer(right if left is argument else left, {**makers, **inner})


def counter_of(loop: While, makers: Mapping[Value, Operation]) -> Counted | None:
    """Return the counter of a loop; None if there is no such counter.

    `makers` has the operations around the loop that define its operands.
    """
    condition, body = loop.condition, loop.body
    inner = condition.makers
    test = inner.get(condition.results[0])
    if not isinstance(test, Pointwise) or test.function != "less" or test.operands[0] not in condition.arguments:
        return None
    place = condition.arguments.index(test.operands[0])
    kind, step, limit = body.arguments[place].type, counter_step(body, place, makers), test.operands[1]
    if limit in condition.arguments:
        same = condition.arguments.index(limit)
        if body.results[same] is not body.arguments[same]:
            return None
        limit = loop.operands[same]
    number = known_integer(limit, {**makers, **inner})
    if kind.bits != 32 or step is None or step < 1 or (number is None and (limit in inner or step > 1)):
        return None
    start = known_integer(loop.operands[place], makers)
    if number is not None and not -_BEYOND <= number < _BEYOND - step:
        return None
    if not kind.is_signed and (number is None or start is None or start >= _BEYOND):
        return None
    return Counted(place, limit if number is None else number, step, start)
