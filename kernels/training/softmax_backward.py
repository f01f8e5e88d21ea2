"""Gradient of softmax along the rows of a matrix."""

from neuroncore_rtl.kernels.program import Program
from neuroncore_rtl.kernels.program.instructions import activation, scalar_tensor_tensor, tensor_tensor
from neuroncore_rtl.kernels.tiling.rows import Rows, scratch, tiles_of
from neuroncore_rtl.spec.isa import AluOp

__all__ = ["softmax_backward"]


def softmax_backward(program: Program, dx: Rows, y: Rows, dy: Rows) -> None:
    """Append dx = (dy - sum(y * dy)) * y, row by row, for y = softmax(x)."""
    products, totals = scratch(program.space, "products", y), scratch(program.space, "total", y, 1)
    for out, weights, slopes, product, total in tiles_of(dx, y, dy, products, totals):
        program.append(tensor_tensor(product, weights, slopes, AluOp.MULTIPLY))
        program.append(activation(product, product, "identity", sum_into=total))
        program.append(scalar_tensor_tensor(out, slopes, total, AluOp.SUBTRACT, weights, AluOp.MULTIPLY))
