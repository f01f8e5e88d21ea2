"""Plan of one pass, and the placement of its operands."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from neuroncore_rtl.frontends.xla.fuse.passes import Pass
from neuroncore_rtl.frontends.xla.fuse.placement import Placement, placed_root
from neuroncore_rtl.frontends.xla.graph.operations import Operation, Pointwise, Value
from neuroncore_rtl.spec.formats import Format

__all__ = ["PassPlan", "along_space", "operand_place", "operand_roots"]


@dataclass(eq=False)
class PassPlan:
    """Plan of a pass or a product.

    Arguments:
        on_chip: whether it reads or writes tiles in SBUF.
        row: dimension of a pass's space along the partitions.
        free: dimensions of it within a tile.
        turned: whether a product's right operand is stationary.
        unit: rows that a reader of the result takes at once.
        stored: results that go to HBM.
        kept: results that stay in SBUF, with their formats.
        deferred: whether the only reader of a product asks for its sums.
    """

    on_chip: bool = False
    row: int | None = None
    free: tuple[int, ...] = ()
    turned: bool = False
    unit: int = 0
    stored: set[Value] = field(default_factory=set)
    kept: dict[Value, Format] = field(default_factory=dict)
    deferred: bool = False


def along_space(steps: Sequence[int], place: Placement, rank: int) -> tuple[int, ...]:
    """Return the steps of a tensor along the dimensions of the space; 0 where it repeats."""
    found = [0] * rank
    for step, at in zip(steps, place, strict=True):
        if at is not None:
            found[at] = step
    return tuple(found)


def operand_place(one: Pass, operation: Operation, operand: Value) -> Placement:
    """Return the placement of an operand; a reduced array has the reduced dimensions too."""
    if isinstance(operation, Pointwise):
        return one.places[operation.result]
    return one.reads[operation] if operand is operation.operands[0] else (None,) * operand.rank


def operand_roots(one: Pass, makers: Mapping[Value, Operation]) -> Iterator[tuple[Value, Placement]]:
    """Yield the root of each operand of a pass, with its placement."""
    for operation in one.operations:
        for operand in operation.operands:
            yield placed_root(operand, operand_place(one, operation, operand), makers)
