"""Placements: which dimension of an iteration space each dimension of a value is.

Broadcasts, reshapes that add or remove dimensions of one element, numbers and indices need no instruction:
a placement leads through them to the value that is stored or computed, the *root*.
"""

from collections.abc import Mapping
from typing import TypeGuard

from neuroncore_rtl.frontends.xla.graph.operations import Broadcast, Constant, Iota, Operation, Reshape, Value

__all__ = ["Placement", "is_transparent", "number_of", "place_result", "placed_root", "root_of", "same_dimensions"]

Placement = tuple[int | None, ...]
"""A dimension of the space for each dimension of a value; None for one of a single element."""


def same_dimensions(operation: Broadcast | Reshape) -> list[tuple[int, int]] | None:
    """Return the dimensions of operand and result that correspond, in pairs, without those of one element.

    None if a reshape has others.
    """
    (operand,), result = operation.operands, operation.result
    if isinstance(operation, Broadcast):
        return [(d, axis) for d, axis in enumerate(operation.axes) if operand.shape[d] != 1]
    sides = [[d for d, extent in enumerate(value.shape) if extent != 1] for value in (operand, result)]
    pairs = [*zip(*sides, strict=False)]
    same = len(sides[0]) == len(sides[1]) and all(operand.shape[d] == result.shape[at] for d, at in pairs)
    return pairs if same else None


def is_transparent(operation: Operation | None) -> TypeGuard[Broadcast | Reshape | Constant | Iota]:
    """Return whether the operation needs no instruction within a pass."""
    if isinstance(operation, Reshape):
        return same_dimensions(operation) is not None
    if isinstance(operation, Constant):
        return operation.splat is not None and operation.result.size > 0
    return isinstance(operation, Broadcast | Iota)


def placed_root(value: Value, place: Placement, makers: Mapping[Value, Operation]) -> tuple[Value, Placement]:
    """Return the root of a value with its placement; numbers and indices are roots themselves."""
    while is_transparent(maker := makers.get(value)) and not isinstance(maker, Constant | Iota):
        (value,) = maker.operands
        found: list[int | None] = [None] * value.rank
        for d, at in same_dimensions(maker) or ():
            found[d] = place[at]
        place = tuple(found)
    return value, place


def root_of(value: Value, makers: Mapping[Value, Operation]) -> Value:
    """Return the root of a value."""
    return placed_root(value, (None,) * value.rank, makers)[0]


def number_of(value: Value, makers: Mapping[Value, Operation]) -> float | int | None:
    """Return the number that all elements of a value are, if it is known."""
    maker = makers.get(root_of(value, makers))
    splat = maker.splat if isinstance(maker, Constant) else None
    return splat if splat is None else float(splat) if value.type.is_float else int(splat)


def place_result(value: Value, root: Value, place: Placement, makers: Mapping[Value, Operation]) -> dict[int, int]:
    """Return the dimensions of `value` that the placement of its root decides, with the space's dimension."""
    if value is root:
        return {d: at for d, at in enumerate(place) if at is not None}
    maker = makers[value]
    assert isinstance(maker, Broadcast | Reshape)
    below = place_result(maker.operands[0], root, place, makers)
    return {at: below[d] for d, at in same_dimensions(maker) or () if d in below}
