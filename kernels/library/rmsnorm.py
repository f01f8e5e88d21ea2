"""Root-mean-square normalisation of the rows of a matrix."""

from neuroncore_rtl.kernels.program import Program, Tensor
from neuroncore_rtl.kernels.program.instructions import activation, scalar_tensor_tensor, tensor_scalar
from neuroncore_rtl.kernels.source import located
from neuroncore_rtl.kernels.tiling.rows import Rows, as_rows, scratch, tiles_of
from neuroncore_rtl.kernels.tiling.transfer import RowVector, rows_like
from neuroncore_rtl.spec.isa import AluOp

__all__ = ["rmsnorm"]


@located
def rmsnorm(program: Program, y: Rows | Tensor, x: Rows | Tensor, gamma: RowVector, epsilon: float = 1e-5) -> None:
    """Append y = x / sqrt(mean(x * x) + epsilon) * gamma, row by row; gamma is [columns], see `rows_like`."""
    x = as_rows(x, "x")
    gains = rows_like(program, gamma, x, "gamma")
    squares, scales = scratch(program.space, "squares", x), scratch(program.space, "scale", x, 1)
    for tile, out, gain, square, scale in tiles_of(x, y, gains, squares, scales):
        program.append(activation(square, tile, "square", sum_into=scale))
        program.append(tensor_scalar(scale, scale, 1 / x.shape[1], AluOp.MULTIPLY, epsilon, AluOp.ADD))
        program.append(activation(scale, scale, "rsqrt"))
        program.append(scalar_tensor_tensor(out, tile, scale, AluOp.MULTIPLY, gain, AluOp.MULTIPLY))
