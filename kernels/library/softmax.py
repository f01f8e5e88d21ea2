"""Softmax along the rows of a matrix, on both engines."""

from neuroncore_rtl.kernels.program.allocator import Allocator
from neuroncore_rtl.kernels.program.instructions import activation, reciprocal, tensor_reduce, tensor_scalar
from neuroncore_rtl.kernels.program.rows import Rows
from neuroncore_rtl.kernels.program.sequence import Sequence
from neuroncore_rtl.kernels.program.tensor import Tensor
from neuroncore_rtl.spec.formats import FP32
from neuroncore_rtl.spec.isa import AluOp

__all__ = ["softmax"]


def softmax(program: Sequence, space: Allocator, y: Rows, x: Rows) -> None:
    """Append y = exp(x - max) / sum(exp(x - max)), row by row.

    The running sum of the exponentials comes free with the activation; all between x and y is FP32.
    """
    powers = [space.sbuf(f"powers{turn}", FP32, x.tiles[0].shape) for turn in range(min(2, len(x.tiles)))]
    waiting = None
    for number, tile in enumerate(x.tiles):
        lanes = slice(tile.partitions)
        bias = space.sbuf("bias", FP32, (1,))[lanes]
        total = space.sbuf("total", FP32, (1,))[lanes]
        power = powers[number % 2][lanes]
        program.append(tensor_reduce(bias, tile, AluOp.MAX, negate=True))
        program.append(activation(power, tile, "exp", bias=bias, sum_into=total))
        # The vector engine finishes the tile before while the scalar engine is busy with this one.
        if waiting is not None:
            _divide(program, *waiting)
        waiting = y.tiles[number], power, total
    _divide(program, *waiting)


def _divide(program: Sequence, out: Tensor, power: Tensor, total: Tensor) -> None:
    program.append(reciprocal(total, total))
    program.append(tensor_scalar(out, power, total, AluOp.MULTIPLY))
