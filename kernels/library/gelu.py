"""The Gaussian error linear unit, forward and backward."""

from neuroncore_rtl.kernels.program.allocator import Allocator
from neuroncore_rtl.kernels.program.instructions import activation, tensor_tensor
from neuroncore_rtl.kernels.program.rows import Rows
from neuroncore_rtl.kernels.program.sequence import Sequence
from neuroncore_rtl.spec.formats import FP32
from neuroncore_rtl.spec.isa import AluOp

__all__ = ["gelu"]


def gelu(program: Sequence, space: Allocator, y: Rows, dx: Rows, x: Rows, dy: Rows, function: str = "gelu") -> None:
    """Append y = gelu(x) and dx = gelu'(x) * dy.

    Arguments:
        function: "gelu" for the form with erf, "gelu_tanh" for the approximation with tanh.
    """
    slopes = [space.sbuf(f"slope{turn}", FP32, x.tiles[0].shape) for turn in range(min(2, len(x.tiles)))]
    for number, tile in enumerate(x.tiles):
        slope = slopes[number % 2][: tile.partitions]
        program.append(activation(slope, tile, f"d{function}"))
        program.append(activation(y.tiles[number], tile, function))
        program.append(tensor_tensor(dx.tiles[number], slope, dy.tiles[number], AluOp.MULTIPLY))
