"""Regular rows: operands that differ only in the numbers of their bits' origins, by constant steps.

A loop computes them. The *shape* of an operand is a pair of tuples: kinds and names of the origins of its bits, with
their places, and the numbers.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise, takewhile
from typing import Any, NamedTuple

__all__ = ["RegularRow", "Shape", "moved", "rows_of", "steps_between"]

Shape = tuple[tuple[Any, ...], tuple[int, ...]]


class RegularRow(NamedTuple):
    """Regular row: first instance, count, stride in instances, and steps of the numbers."""

    first: int
    count: int
    stride: int
    steps: tuple[int, ...]


def moved(shape: Shape, steps: Sequence[int], n: int) -> Shape:
    """Return the shape of the operand `n` places after an operand in a regular row."""
    alike, numbers = shape
    return alike, tuple(number + n * step for number, step in zip(numbers, steps, strict=True))


def steps_between(shape: Shape, following: Shape) -> tuple[int, ...]:
    """Return the differences of the numbers of two operands."""
    return tuple(b - a for a, b in zip(shape[1], following[1], strict=True))


def rows_of(shapes: Sequence[Shape]) -> tuple[list[RegularRow], list[RegularRow]]:
    """Return the longest row, which may lack some of its operands, and rows of all operands that are not in it."""
    found: Counter[tuple[tuple[int, ...], Shape]] = Counter()
    for k, (shape, following) in enumerate(pairwise(shapes)):
        if shape[0] == following[0]:
            steps = steps_between(shape, following)
            found[steps, moved(shape, steps, -k)] += 1
    longest, rest = [], [*range(len(shapes))]
    for (steps, base), _ in found.most_common(1):
        members = {k for k in rest if shapes[k][0] == base[0] and shapes[k] == moved(base, steps, k)}
        longest = [RegularRow(min(members), 1 + max(members) - min(members), 1, steps)]
        rest = [k for k in rest if k not in members]
    rows = []
    while rest:
        rows.append(_row(shapes, rest))
        rest = rest[rows[-1].count :]
    return longest, rows


def _row(shapes: Sequence[Shape], rest: Sequence[int]) -> RegularRow:
    """Return the regular row from instance `rest[0]` on."""
    first, *others = rest
    alike, numbers = shapes[first]
    if not others or shapes[others[0]][0] != alike:
        return RegularRow(first, 1, 1, (0,) * len(numbers))
    stride, steps = others[0] - first, steps_between(shapes[first], shapes[others[0]])
    row = takewhile(
        lambda n: rest[n] == first + n * stride and shapes[rest[n]] == moved(shapes[first], steps, n),
        range(1, len(rest)),
    )
    return RegularRow(first, 1 + len([*row]), stride, steps)
