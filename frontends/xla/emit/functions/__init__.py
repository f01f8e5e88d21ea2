"""Functions of elements as instructions, a file each kind."""

from neuroncore_rtl.frontends.xla.emit.functions import (
    arithmetic,
    bits,
    comparisons,
    conversions,
    division,
    powers,
    transcendental,
)
from neuroncore_rtl.frontends.xla.emit.lanes import LaneOperand, Lanes
from neuroncore_rtl.frontends.xla.graph.types import ElementType
from neuroncore_rtl.frontends.xla.refusal import Refused
from neuroncore_rtl.kernels.program import Tensor

__all__ = ["FUNCTIONS", "evaluate"]

_KINDS = arithmetic, bits, comparisons, conversions, division, powers, transcendental
FUNCTIONS = {name: function for kind in _KINDS for name, function in kind.FUNCTIONS.items()}
"""Functions by name."""


def evaluate(lanes: Lanes, name: str, dst: Tensor, to: ElementType, of: ElementType, *operands: LaneOperand) -> None:
    """Append dst = function of operands of type `of`; the result has type `to`.

    Integers after the function's name, separated by blanks, are its parameters.

    Raises:
        Refused: if the machine or the function does not have these types.
    """
    name, *numbers = name.split()
    if name not in FUNCTIONS:
        raise Refused(f"functions must be of docs/jax.md's table, not {name}")
    FUNCTIONS[name](lanes, dst, to, of, *operands, *map(int, numbers))
