"""Functions of elements as instructions, a file each kind; many are of several, since the engines do not have them."""

from neuroncore_rtl.kernels.library.functions import arithmetic, conversions, integers, transcendental
from neuroncore_rtl.kernels.library.functions.lanes import ElementKind, Lanes
from neuroncore_rtl.kernels.program import Program, Tensor
from neuroncore_rtl.kernels.source import located

__all__ = ["FUNCTIONS", "apply_function"]

_KINDS = arithmetic, integers, conversions, transcendental
FUNCTIONS = {name: function for kind in _KINDS for name, function in kind.FUNCTIONS.items()}
"""Functions by StableHLO's name."""


@located
def apply_function(program: Program, dst: Tensor, function: str, *operands: Tensor | float) -> None:
    """Append dst = function(operands) on tiles of dst's shape and partitions, or numbers; bytes are not booleans.

    Raises:
        ValueError: if there is no such function, the shapes differ, or the machine does not have a unit.
    """
    if function not in FUNCTIONS:
        raise ValueError(f"function must be one of {', '.join(sorted(FUNCTIONS))}, not {function!r}")
    tiles = [one for one in operands if isinstance(one, Tensor)]
    if any((one.shape, one.partitions) != (dst.shape, dst.partitions) for one in tiles):
        found = [(one.partitions, *one.shape) for one in tiles]
        raise ValueError(f"{function}: operands must have the shape {(dst.partitions, *dst.shape)}, not {found}")
    lanes, of = Lanes(program, dst.shape, dst.partitions), ElementKind((tiles or [dst])[0].format)
    FUNCTIONS[function](lanes, dst, ElementKind(dst.format), of, *operands)
