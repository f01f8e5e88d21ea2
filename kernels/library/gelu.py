"""Gaussian error linear unit, forward and backward."""

from neuroncore_rtl.kernels.program import Program, Tensor
from neuroncore_rtl.kernels.program.instructions import activation, tensor_tensor
from neuroncore_rtl.kernels.source import located
from neuroncore_rtl.kernels.tiling.rows import Rows, scratch, tiles_of
from neuroncore_rtl.spec.isa import AluOp

__all__ = ["gelu"]


@located
def gelu(
    program: Program,
    y: Rows | Tensor,
    dx: Rows | Tensor,
    x: Rows | Tensor,
    dy: Rows | Tensor,
    function: str = "gelu",
) -> None:
    """Append the function and its gradient.

    y = gelu(x);  dx = gelu'(x) * dy

    `function` is "gelu" for the form with erf, "gelu_tanh" for the approximation with tanh.
    """
    slopes = scratch(program.space, "slope", x)
    for tile, out, slope, dout, dtile in tiles_of(x, y, slopes, dy, dx):
        program.append(activation(slope, tile, f"d{function}"))
        program.append(activation(out, tile, function))
        program.append(tensor_tensor(dtile, slope, dout, AluOp.MULTIPLY))
