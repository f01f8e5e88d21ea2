"""Layer normalisation of the rows of a matrix."""

from neuroncore_rtl.kernels.program.allocator import Allocator
from neuroncore_rtl.kernels.program.instructions import bn_aggr, bn_stats, tensor_scalar, tensor_tensor
from neuroncore_rtl.kernels.program.rows import Rows
from neuroncore_rtl.kernels.program.sequence import Sequence
from neuroncore_rtl.spec.formats import FP32
from neuroncore_rtl.spec.isa import AluOp
from neuroncore_rtl.spec.isa.elementwise import OUTPUTS, STATS_ELEMENTS, Opcode

__all__ = ["layernorm"]

STATS = OUTPUTS[Opcode.BN_STATS]


def layernorm(
    program: Sequence, space: Allocator, y: Rows, x: Rows, gamma: Rows, beta: Rows, epsilon: float = 1e-5
) -> None:
    """Append y = (x - mean) / sqrt(variance + epsilon) * gamma + beta, row by row.

    The statistics of up to 512 columns each are aggregated, so a row may have any length.
    """
    columns = x.shape[1]
    chunks = range(0, columns, STATS_ELEMENTS)
    scaled = [space.sbuf(f"scaled{turn}", FP32, (columns,)) for turn in range(min(2, len(x.tiles)))]
    for number, tile in enumerate(x.tiles):
        lanes = slice(tile.partitions)
        stats = space.sbuf("stats", FP32, (len(chunks) * STATS,))[lanes]
        moments = space.sbuf("moments", FP32, (2,))[lanes]
        mean, variance = moments[:, :1], moments[:, 1:]
        middle = scaled[number % 2][lanes]
        for place, first in enumerate(chunks):
            part = stats[:, place * STATS : (place + 1) * STATS]
            program.append(bn_stats(part, tile[:, first : first + STATS_ELEMENTS]))
        program.append(bn_aggr(moments, stats))
        program.append(tensor_scalar(variance, variance, epsilon, AluOp.ADD, -0.5, AluOp.POWER))
        program.append(tensor_scalar(middle, tile, mean, AluOp.SUBTRACT, variance, AluOp.MULTIPLY))
        program.append(tensor_tensor(middle, middle, gamma.tiles[number], AluOp.MULTIPLY))
        program.append(tensor_tensor(y.tiles[number], middle, beta.tiles[number], AluOp.ADD))
