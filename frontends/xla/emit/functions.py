"""Functions of elements, by the kernels of the library."""

from neuroncore_rtl.frontends.xla.graph.operations import Pointwise
from neuroncore_rtl.frontends.xla.refusal import Refused
from neuroncore_rtl.kernels.library.functions import FUNCTIONS
from neuroncore_rtl.kernels.library.functions.lanes import LaneOperand, Lanes
from neuroncore_rtl.kernels.program import Tensor

__all__ = ["append_function"]


def append_function(lanes: Lanes, operation: Pointwise, dst: Tensor, *operands: LaneOperand) -> None:
    """Append dst = function of the operands; Refused if there is no such function, MissingUnit without a unit for it.

    Integers after the function's name, separated by blanks, are its parameters.
    """
    name, *numbers = operation.function.split()
    if name not in FUNCTIONS:
        raise Refused(f"functions must be of docs/jax.md's table, not {name}")
    of = operation.operands[0].type
    FUNCTIONS[name](lanes, dst, operation.result.type, of, *operands, *map(int, numbers))
