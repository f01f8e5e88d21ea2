"""Root-mean-square normalisation of the rows of a matrix."""

from neuroncore_rtl.kernels.program.allocator import Allocator
from neuroncore_rtl.kernels.program.instructions import activation, scalar_tensor_tensor, tensor_scalar
from neuroncore_rtl.kernels.program.rows import Rows
from neuroncore_rtl.kernels.program.sequence import Sequence
from neuroncore_rtl.spec.formats import FP32
from neuroncore_rtl.spec.isa import AluOp

__all__ = ["rmsnorm"]


def rmsnorm(program: Sequence, space: Allocator, y: Rows, x: Rows, gamma: Rows, epsilon: float = 1e-5) -> None:
    """Append y = x / sqrt(mean(x * x) + epsilon) * gamma, row by row; the sum of squares comes with the activation."""
    columns = x.shape[1]
    squares = [space.sbuf(f"squares{turn}", FP32, (columns,)) for turn in range(min(2, len(x.tiles)))]
    for number, tile in enumerate(x.tiles):
        lanes = slice(tile.partitions)
        scale = space.sbuf("scale", FP32, (1,))[lanes]
        program.append(activation(squares[number % 2][lanes], tile, "square", sum_into=scale))
        program.append(tensor_scalar(scale, scale, 1 / columns, AluOp.MULTIPLY, epsilon, AluOp.ADD))
        program.append(activation(scale, scale, "rsqrt"))
        gain = gamma.tiles[number]
        program.append(scalar_tensor_tensor(y.tiles[number], tile, scale, AluOp.MULTIPLY, gain, AluOp.MULTIPLY))
