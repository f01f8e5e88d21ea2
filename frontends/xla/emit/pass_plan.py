"""Plan of one pass, its operands in its space, and its tensors."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from neuroncore_rtl.frontends.xla.emit.emission import Emission
from neuroncore_rtl.frontends.xla.emit.selection import Selection
from neuroncore_rtl.frontends.xla.fuse.passes import Pass
from neuroncore_rtl.frontends.xla.fuse.placement import Placement, number_of, placed_root
from neuroncore_rtl.frontends.xla.graph.operations import Iota, Operation, Pointwise, Value
from neuroncore_rtl.frontends.xla.graph.types import dense_steps
from neuroncore_rtl.spec.formats import Format

__all__ = ["PassPlan", "PassTensors", "along_space", "operand_place", "operand_roots"]


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


@dataclass
class PassTensors:
    """A pass with its tensors: results that are used elsewhere, and inputs, each with its steps along the space."""

    emission: Emission
    one: Pass
    plan: PassPlan
    used: dict[Value, tuple[int, ...]]
    inputs: dict[tuple[Value, Placement], tuple[int, ...]] = field(default_factory=dict)
    selection: Selection = field(init=False)

    def __post_init__(self):
        self.selection = Selection.of(self.one, self.used, self.emission.makers, self.plan.free)
        for root, place in operand_roots(self.one, self.emission.makers):
            if root not in self.one.places and number_of(root, self.emission.makers) is None:
                maker, rank = self.emission.makers.get(root), len(self.one.space)
                if isinstance(maker, Iota):
                    self.inputs[root, place] = tuple(int(at == place[maker.axis]) for at in range(rank))
                else:
                    view = self.emission.view(root) or self.emission.tensor(root)
                    self.inputs[root, place] = along_space(view.steps, place, rank)

    def presence(self, place: Placement) -> tuple[int, ...]:
        """Return steps of a value in row-major order of the space's dimensions that it has."""
        there = {at for at in place if at is not None}
        dense = dense_steps(tuple(n if d in there else 1 for d, n in enumerate(self.one.space)))
        return tuple(step if d in there else 0 for d, step in enumerate(dense))
