"""Placements: which dimension of an iteration space each dimension of a value is.

Broadcasts, reshapes that add or remove dimensions of one element, numbers and indices need no instruction:
a placement leads through them to the value that is stored or computed, the *root*.
"""

from collections.abc import Mapping
from typing import TypeGuard

from neuroncore_rtl.frontends.xla.graph.operations import Broadcast, Constant, Iota, Operation, Reshape, Value

__all__ = ["Placement", "is_transparent", "kept_dimensions", "number_of", "place_result", "placed_root"]

Placement = tuple[int | None, ...]
"""A dimension of the space for each dimension of a value; None for one of a single element."""


def kept_dimensions(operation: Reshape) -> list[tuple[int, int]] | None:
    """Return the dimensions of operand and result of more than one element in pairs; None if their extents differ."""
    shapes = operation.operands[0].shape, operation.result.shape
    sides = [[d for d, extent in enumerate(shape) if extent != 1] for shape in shapes]
    if [shapes[0][d] for d in sides[0]] != [shapes[1][d] for d in sides[1]]:
        return None
    return list(zip(*sides, strict=True))


def is_transparent(operation: Operation | None) -> TypeGuard[Broadcast | Reshape | Constant | Iota]:
    """Return whether the operation needs no instruction within a pass."""
    if isinstance(operation, Reshape):
        return kept_dimensions(operation) is not None
    if isinstance(operation, Constant):
        return operation.splat is not None and operation.result.size > 0
    return isinstance(operation, Broadcast | Iota)


def placed_root(value: Value, place: Placement, makers: Mapping[Value, Operation]) -> tuple[Value, Placement]:
    """Return the root of a value with its placement; numbers and indices are roots themselves."""
    while is_transparent(maker := makers.get(value)) and not isinstance(maker, Constant | Iota):
        (operand,) = maker.operands
        if isinstance(maker, Broadcast):
            place = tuple(place[axis] if n != 1 else None for axis, n in zip(maker.axes, operand.shape, strict=True))
        else:
            found: list[int | None] = [None] * operand.rank
            for d, at in kept_dimensions(maker) or ():
                found[d] = place[at]
            place = tuple(found)
        value = operand
    return value, place


def number_of(value: Value, makers: Mapping[Value, Operation]) -> float | int | None:
    """Return the number that all elements of a value are, if it is known."""
    maker = makers.get(placed_root(value, (None,) * value.rank, makers)[0])
    splat = maker.splat if isinstance(maker, Constant) else None
    return splat if splat is None else float(splat) if value.type.is_float else int(splat)


def place_result(value: Value, root: Value, place: Placement, makers: Mapping[Value, Operation]) -> dict[int, int]:
    """Return the dimensions of `value` that the placement of its root decides, with the space's dimension."""
    if value is root:
        return {d: at for d, at in enumerate(place) if at is not None}
    maker = makers[value]
    assert isinstance(maker, Broadcast | Reshape)
    below = place_result(maker.operands[0], root, place, makers)
    if isinstance(maker, Broadcast):
        return {axis: below[d] for d, axis in enumerate(maker.axes) if d in below}
    return {at: below[d] for d, at in kept_dimensions(maker) or () if d in below}
