"""The Gaussian error linear unit, forward and backward."""

from kernels.allocator import Allocator
from kernels.instructions import activation, tensor_tensor
from kernels.rows import Rows
from kernels.sequence import Sequence
from spec.formats import FP32
from spec.isa import AluOp

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
