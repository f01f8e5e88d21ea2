"""Softmax along the rows of a matrix."""

from neuroncore_rtl.kernels.program import Program, Tensor
from neuroncore_rtl.kernels.program.instructions import activation, tensor_reduce, tensor_scalar
from neuroncore_rtl.kernels.source import located
from neuroncore_rtl.kernels.tiling.inverse import inverse
from neuroncore_rtl.kernels.tiling.rows import Rows, scratch, tiles_of
from neuroncore_rtl.spec.isa import AluOp

__all__ = ["softmax"]


@located
def softmax(program: Program, y: Rows | Tensor, x: Rows | Tensor) -> None:
    """Append y = exp(x - max) / sum(exp(x - max)), row by row; intermediate values are FP32."""
    waiting = None
    powers = scratch(program.space, "powers", x)
    biases, totals = (scratch(program.space, name, x, 1) for name in ("bias", "total"))
    for tile, out, power, bias, total in tiles_of(x, y, powers, biases, totals):
        program.append(tensor_reduce(bias, tile, AluOp.MAX, negate=True))
        program.append(activation(power, tile, "exp", bias=bias, sum_into=total))
        # The vector engine finishes the previous tile while the scalar engine computes this one.
        if waiting is not None:
            _divide(program, *waiting)
        waiting = out, power, total
    assert waiting is not None  # tiles_of yields at least one
    _divide(program, *waiting)


def _divide(program: Program, out: Tensor, power: Tensor, total: Tensor) -> None:
    inverse(program, total, total)
    program.append(tensor_scalar(out, power, total, AluOp.MULTIPLY))
