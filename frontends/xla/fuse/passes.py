"""Formation of passes: which operations are computed together, tile by tile, with a load of each input.

Operations are visited in order. One joins the pass of an operand if its own dimensions are dimensions of the pass, and
if no other pass lies between the two. Two passes that an operation needs become one if their dimensions correspond.
A reduction joins only if it reduces the innermost dimensions, with adjacent elements, and if they fit on chip.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import inf, prod
from typing import TypeGuard

from neuroncore_rtl.frontends.xla.fuse.placement import Placement, is_transparent, place_result, placed_root, root_of
from neuroncore_rtl.frontends.xla.graph.operations import Graph, Operation, Pointwise, Reduce, ReduceWindow, Value
from neuroncore_rtl.frontends.xla.graph.types import ElementType
from neuroncore_rtl.spec.formats import IntFormat

__all__ = ["Pass", "combined_by", "combining_function", "neutral_number", "passes_of"]

_COMBINING = frozenset(("add", "multiply", "maximum", "minimum", "and", "or"))


@dataclass(eq=False)
class Pass:
    """Operations that are computed together, or one operation of another kind.

    Arguments:
        operations: in order.
        space: extents of the iteration space.
        places: placement of each result in the space.
        reads: placement of the array that a reduction reads.
        reduced: dimensions of the space that an operation reduces.
        needs: passes that must come before.
    """

    operations: list[Operation]
    space: tuple[int, ...] = ()
    places: dict[Value, Placement] = field(default_factory=dict)
    reads: dict[Operation, Placement] = field(default_factory=dict)
    reduced: set[int] = field(default_factory=set)
    needs: set["Pass"] = field(default_factory=set)

    @property
    def is_fused(self) -> bool:
        """Whether this is a pass over an iteration space."""
        first = self.operations[0]
        return (isinstance(first, Pointwise) and first.result.size > 0) or is_row_reduction(first)

    def has_inner(self, dimensions: set[int]) -> bool:
        """Return whether some dimensions are the innermost ones of the space."""
        return dimensions == {*range(len(self.space) - len(dimensions), len(self.space))}


def combining_function(reduce: Reduce | ReduceWindow) -> str | None:
    """Return the function by which a reduction combines two elements, if a pass is capable of it."""
    function = combined_by(reduce.body)
    sums_truths = function in ("add", "multiply") and reduce.result.type.is_boolean
    return function if function in _COMBINING and not sums_truths else None


def combined_by(body: Graph) -> str | None:
    """Return the function by which a block combines its two arguments, if it is a single one."""
    if len(body.operations) != 1 or len(body.arguments) != 2:
        return None
    (only,) = body.operations
    if not isinstance(only, Pointwise) or {*only.operands} != {*body.arguments} or body.results != only.results:
        return None
    return only.function


def neutral_number(function: str, of: ElementType) -> float | int:
    """Return the number that does not change a combination with any other."""
    if of.is_float:
        return {"add": 0.0, "multiply": 1.0, "maximum": -inf, "minimum": inf}[function]
    fmt = of.format
    assert isinstance(fmt, IntFormat)
    low, high = (0, 1) if of.is_boolean else (fmt.min, fmt.max)
    every = 1 if of.is_boolean else -1 if fmt.min else fmt.max
    return {"add": 0, "multiply": 1, "maximum": low, "minimum": high, "or": 0, "and": every}[function]


def is_row_reduction(operation: Operation) -> TypeGuard[Reduce]:
    """Return whether an operation is a reduction that a pass can compute."""
    return (
        isinstance(operation, Reduce) and combining_function(operation) is not None and operation.operands[0].size > 0
    )


def passes_of(block: Graph, makers: Mapping[Value, Operation], most: int) -> list[Pass]:
    """Return the passes of a block in an order that puts each after the passes it needs.

    `makers` has the operation that defines each value, also of enclosing blocks; `most` is the number of elements of a
    partition to which a pass may reduce.
    """
    forming = _Forming(makers, most)
    for operation in block.operations:
        forming.add(operation)
    return _ordered(forming.passes)


@dataclass
class _Forming:
    makers: Mapping[Value, Operation]
    most: int
    passes: list[Pass] = field(default_factory=list)
    of: dict[Value, Pass] = field(default_factory=dict)

    def add(self, operation: Operation) -> None:
        if is_transparent(operation):
            return
        roots = {root_of(value, self.makers) for value in operation.reads()}
        needs = {self.of[root] for root in roots if root in self.of}
        if isinstance(operation, Pointwise) and operation.result.size:
            self._add_elementwise(operation, needs)
        elif is_row_reduction(operation):
            self._add_reduction(operation, needs)
        else:
            self._start(operation, needs)

    def _start(self, operation: Operation, needs: set[Pass], value: Value | None = None) -> Pass:
        """Start a pass over the dimensions of a value."""
        new = Pass([operation], needs=needs)
        if value is not None:
            wide = [d for d, extent in enumerate(value.shape) if extent != 1]
            new.space = tuple(value.shape[d] for d in wide)
            new.places = {value: tuple(wide.index(d) if d in wide else None for d in range(value.rank))}
        self.passes.append(new)
        self.of.update(dict.fromkeys(operation.results, new))
        return new

    def _add_elementwise(self, operation: Operation, needs: set[Pass]) -> None:
        result = operation.result
        for candidate, place in self._candidates(needs, operation.operands, result.shape):
            others = {one for one in needs - {candidate} if one.is_fused}
            self._join(candidate, operation, needs, place)
            for other in sorted(others, key=self.passes.index, reverse=True):
                self._merge(candidate, other)
            return
        self._start(operation, needs, result)

    def _add_reduction(self, operation: Reduce, needs: set[Pass]) -> None:
        operand, result = operation.operands[0], operation.result
        for candidate, place in self._candidates(needs, operation.operands[:1], operand.shape):
            reduced = candidate.reduced | {at for axis in operation.axes if (at := place[axis]) is not None}
            if not candidate.has_inner(reduced) or prod(candidate.space[d] for d in reduced) > self.most:
                continue
            # The rest of a reduction is spread over the partitions; its own reduction is another pass.
            if candidate.reduced not in (set(), reduced):
                continue
            candidate.reduced = reduced
            candidate.reads[operation] = place
            kept = tuple(at for d, at in enumerate(place) if d not in operation.axes)
            self._join(candidate, operation, needs, kept)
            return
        new = self._start(operation, needs, operand)
        place = new.reads[operation] = new.places.pop(operand)
        new.reduced = {at for axis in operation.axes if (at := place[axis]) is not None}
        new.places[result] = tuple(at for d, at in enumerate(place) if d not in operation.axes)

    def _candidates(
        self, needs: set[Pass], operands: tuple[Value, ...], shape: tuple[int, ...]
    ) -> Iterator[tuple[Pass, Placement]]:
        """Yield needed passes that an operation could join, the last first, with the placement there.

        No other needed pass needs them, directly or not.
        """
        for candidate in sorted(needs, key=self.passes.index, reverse=True):
            place = self._place(operands, shape, candidate)
            if place is not None and not any(_reaches(one, candidate) for one in needs - {candidate}):
                yield candidate, place

    def _place(self, operands: tuple[Value, ...], shape: tuple[int, ...], into: Pass) -> Placement | None:
        """Return the placement in a pass of a value of `shape` that operands of it decide, or None."""
        if not into.is_fused:
            return None
        found: dict[int, int] = {}
        for operand in operands:
            root = root_of(operand, self.makers)
            if self.of.get(root) is into:
                for d, at in place_result(operand, root, into.places[root], self.makers).items():
                    if found.setdefault(d, at) != at:
                        return None
        for d, extent in enumerate(shape):
            if extent != 1 and d not in found:
                free = [at for at, n in enumerate(into.space) if n == extent and at not in found.values()]
                if not free:
                    return None
                found[d] = free[0]
        if len({*found.values()}) != len(found):
            return None
        place = tuple(found.get(d) if extent != 1 else None for d, extent in enumerate(shape))
        for operand in operands:
            root, own = placed_root(operand, place, self.makers)
            if self.of.get(root) is into and into.places[root] != own:
                return None
        return place

    def _join(self, into: Pass, operation: Operation, needs: set[Pass], place: Placement) -> None:
        into.operations.append(operation)
        into.needs |= needs - {into}
        into.places[operation.result] = place
        self.of[operation.result] = into

    def _merge(self, into: Pass, other: Pass) -> None:
        """Merge another pass that computes operands, if its dimensions correspond to the same ones for every reader."""
        if other is into or any(_reaches(one, other) for one in into.needs - {other}):
            return
        if any(_reaches(one, into) for one in other.needs):
            return
        same: dict[int, int] = {}
        for reader in into.operations:
            whole = into.reads.get(reader) or into.places[reader.result]
            for operand in reader.operands:
                place = whole if len(whole) == operand.rank else (None,) * operand.rank
                root, own = placed_root(operand, place, self.makers)
                if self.of.get(root) is other:
                    for theirs, ours in zip(other.places[root], own, strict=True):
                        if theirs is not None and (ours is None or same.setdefault(theirs, ours) != ours):
                            return
        reduced = into.reduced | {same[d] for d in other.reduced if d in same}
        if len({*same.values()}) != len(other.space) or not into.has_inner(reduced):
            return
        into.reduced = reduced

        def moved(place: Placement) -> Placement:
            return tuple(None if d is None else same[d] for d in place)

        into.places.update({value: moved(theirs) for value, theirs in other.places.items()})
        into.reads.update({reduce: moved(theirs) for reduce, theirs in other.reads.items()})
        self.of.update(dict.fromkeys(other.places, into))
        into.operations = [*other.operations, *into.operations]
        into.needs = (into.needs | other.needs) - {into, other}
        self.passes.remove(other)
        for one in self.passes:
            if other in one.needs:
                one.needs = (one.needs - {other}) | {into}
        into.needs.discard(into)


def _reaches(start: Pass, goal: Pass) -> bool:
    """Return whether `start` is `goal`, or needs it directly or not."""
    seen, waiting = {start}, [start]
    while waiting:
        one = waiting.pop()
        if one is goal:
            return True
        fresh = one.needs - seen
        seen |= fresh
        waiting += fresh
    return False


def _ordered(passes: list[Pass]) -> list[Pass]:
    done: dict[Pass, None] = {}
    places = {one: at for at, one in enumerate(passes)}
    for first in passes:
        waiting = [first]
        while waiting:
            missing = waiting[-1].needs - done.keys()
            if missing:
                waiting.append(min(missing, key=places.__getitem__))
            else:
                done.setdefault(waiting.pop())
    return list(done)
