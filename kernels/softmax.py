"""Softmax along the rows of a matrix, on both engines."""

from kernels.allocator import Allocator
from kernels.instructions import activation, reciprocal, tensor_reduce, tensor_scalar
from kernels.rows import Rows
from kernels.sequence import Sequence
from kernels.tensor import Tensor
from spec.formats import FP32
from spec.isa import AluOp

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
