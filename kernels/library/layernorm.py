"""Layer normalisation of the rows of a matrix."""

from neuroncore_rtl.kernels.program import Program, Tensor
from neuroncore_rtl.kernels.program.instructions import bn_aggr, bn_stats, tensor_scalar, tensor_tensor
from neuroncore_rtl.kernels.source import located
from neuroncore_rtl.kernels.tiling.rows import Rows, as_rows, scratch, tiles_of
from neuroncore_rtl.kernels.tiling.transfer import RowVector, rows_like
from neuroncore_rtl.spec.formats import FP32
from neuroncore_rtl.spec.isa import AluOp
from neuroncore_rtl.spec.isa.elementwise import OUTPUTS, STATS_ELEMENTS, Opcode

__all__ = ["inverse_deviation", "layernorm"]

STATS = OUTPUTS[Opcode.BN_STATS]


@located
def layernorm(
    program: Program,
    y: Rows | Tensor,
    x: Rows | Tensor,
    gamma: RowVector,
    beta: RowVector,
    epsilon: float = 1e-5,
) -> None:
    """Append y = (x - mean) / sqrt(variance + epsilon) * gamma + beta, row by row; gamma and beta are [columns].

    Statistics of up to 512 columns are aggregated, so a row may have any length.
    """
    x = as_rows(x, "x")
    gains, shifts = (rows_like(program, one, x, name) for one, name in ((gamma, "gamma"), (beta, "beta")))
    scaled, pairs = scratch(program.space, "scaled", x), scratch(program.space, "moments", x, 2)
    for tile, out, gain, shift, middle, moments in tiles_of(x, y, gains, shifts, scaled, pairs):
        inverse_deviation(program, moments, tile, epsilon)
        program.append(tensor_scalar(middle, tile, moments[:, :1], AluOp.SUBTRACT, moments[:, 1:], AluOp.MULTIPLY))
        program.append(tensor_tensor(middle, middle, gain, AluOp.MULTIPLY))
        program.append(tensor_tensor(out, middle, shift, AluOp.ADD))


@located
def inverse_deviation(program: Program, moments: Tensor, tile: Tensor, epsilon: float) -> None:
    """Append the computation of moments[0:2] = mean and 1 / sqrt(variance + epsilon) of each row of a tile."""
    chunks = range(0, tile.size, STATS_ELEMENTS)
    stats = program.space.sbuf("stats", FP32, (len(chunks) * STATS,), tile.partitions)
    for place, first in enumerate(chunks):
        part = stats[:, place * STATS : (place + 1) * STATS]
        program.append(bn_stats(part, tile[:, first : first + STATS_ELEMENTS]))
    program.append(bn_aggr(moments, stats))
    variance = moments[:, 1:]
    program.append(tensor_scalar(variance, variance, epsilon, AluOp.ADD, -0.5, AluOp.POWER))
