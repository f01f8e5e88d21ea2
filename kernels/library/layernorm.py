"""Layer normalisation of the rows of a matrix."""

from neuroncore_rtl.kernels.program import Program, Rows, scratch, tiles_of
from neuroncore_rtl.kernels.program.instructions import bn_aggr, bn_stats, tensor_scalar, tensor_tensor
from neuroncore_rtl.spec.isa import AluOp
from neuroncore_rtl.spec.isa.elementwise import OUTPUTS, STATS_ELEMENTS, Opcode

__all__ = ["layernorm"]

STATS = OUTPUTS[Opcode.BN_STATS]


def layernorm(program: Program, y: Rows, x: Rows, gamma: Rows, beta: Rows, epsilon: float = 1e-5) -> None:
    """Append y = (x - mean) / sqrt(variance + epsilon) * gamma + beta, row by row.

    The statistics of up to 512 columns each are aggregated, so a row may have any length.
    """
    chunks = range(0, x.shape[1], STATS_ELEMENTS)
    scaled, pairs = scratch(program.space, "scaled", x), scratch(program.space, "moments", x, 2)
    statistics = scratch(program.space, "stats", x, len(chunks) * STATS)
    tiles = tiles_of(x, y, gamma, beta, scaled, pairs, statistics)
    for tile, out, gain, shift, middle, moments, stats in tiles:
        mean, variance = moments[:, :1], moments[:, 1:]
        for place, first in enumerate(chunks):
            part = stats[:, place * STATS : (place + 1) * STATS]
            program.append(bn_stats(part, tile[:, first : first + STATS_ELEMENTS]))
        program.append(bn_aggr(moments, stats))
        program.append(tensor_scalar(variance, variance, epsilon, AluOp.ADD, -0.5, AluOp.POWER))
        program.append(tensor_scalar(middle, tile, mean, AluOp.SUBTRACT, variance, AluOp.MULTIPLY))
        program.append(tensor_tensor(middle, middle, gain, AluOp.MULTIPLY))
        program.append(tensor_tensor(out, middle, shift, AluOp.ADD))
