"""Tensors of a pass with their steps along its space."""

from dataclasses import dataclass, field

from neuroncore_rtl.frontends.xla.emit.emission import Emission
from neuroncore_rtl.frontends.xla.emit.pass_plan import PassPlan, along_space, operand_roots
from neuroncore_rtl.frontends.xla.emit.selection import Selection
from neuroncore_rtl.frontends.xla.fuse.passes import Pass
from neuroncore_rtl.frontends.xla.fuse.placement import Placement, number_of
from neuroncore_rtl.frontends.xla.graph.operations import Iota, Value
from neuroncore_rtl.frontends.xla.graph.types import dense_steps

__all__ = ["PassTensors"]


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
