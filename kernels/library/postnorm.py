"""End of a transformer sublayer, layernorm(x w + bias + residual), row by row as the array finishes sums."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from neuroncore_rtl.kernels.library.product import product, strips_of
from neuroncore_rtl.kernels.program import HbmTensor, Program, Tensor
from neuroncore_rtl.kernels.program.instructions import activation, bn_aggr, bn_stats, tensor_scalar, tensor_tensor
from neuroncore_rtl.kernels.source import located
from neuroncore_rtl.kernels.tiling.blocks import cut
from neuroncore_rtl.kernels.tiling.rows import Rows, scratch
from neuroncore_rtl.kernels.tiling.transfer import Matrix, load_row
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.formats import BF16, FP32, Format
from neuroncore_rtl.spec.isa import AluOp
from neuroncore_rtl.spec.isa.elementwise import OUTPUTS, STATS_ELEMENTS, Opcode

__all__ = ["Normed", "Scales", "postnorm"]

PIECE = 128
"""Columns that each instruction processes: enough to hide the latency between the engines."""

STATS = OUTPUTS[Opcode.BN_STATS]

assert Config.RANGES["psum_words"][1] <= STATS_ELEMENTS


class Scales(NamedTuple):
    """Parameters gamma and beta of a layer normalisation, [features], in HBM or as results of `load_row`."""

    gamma: Any  # HbmTensor, or Tensor
    beta: Any


class Normed(NamedTuple):
    """Result of `postnorm`, [tokens, outputs], and the FP32 `sums` before the normalisation."""

    y: Rows
    sums: Rows


@located
def postnorm(
    program: Program,
    x_t: Matrix,
    w: Matrix,
    bias: HbmTensor | Tensor,
    residual: Rows,
    scales: Scales,
    *,
    epsilon: float = 1e-5,
    name: str = "y",
    fmt: Format | str = BF16,
) -> Normed:
    """Append and return layernorm(x w + bias + residual) * gamma + beta.

    x_t is [inputs, tokens], w [inputs, outputs]. The bias [outputs] is in HBM, or a result of `load_row`. The residual
    has tiles that may be operands of the array. Name and format are those of y.
    """
    features = w.shape[1]
    for parameters in (bias, *scales):
        if parameters.shape != (features,):
            raise ValueError(f"{parameters.name}: shape must be [{features}], not {list(parameters.shape)}")
    if residual.shape != (x_t.shape[1], features):
        found = list(residual.shape)
        raise ValueError(f"{name}: residual must be {[x_t.shape[1], features]}, not {found}")
    row, gains, shifts = (load_row(program, one) if isinstance(one, HbmTensor) else one for one in (bias, *scales))
    pieces = len(strips_of(w, x_t.shape[1], program.columns, program.config.psum_words))
    sums, statistics, moments = (
        scratch(program.space, f"{name}.{what}", residual, columns)
        for what, columns in (("sums", features), ("stats", pieces * STATS), ("moments", 3))
    )
    tiles = [matrix.by_first for matrix in (sums, statistics, moments, residual)]
    outs: dict[int, list[tuple[Tensor, slice]]] = {}

    def finish(out: Tensor, found: Tensor, rows: slice, columns: slice) -> None:
        whole, stats, few, before = (own[rows.start] for own in tiles)
        done = outs.setdefault(rows.start, [])
        place = len(done) * STATS
        done.append((out, columns))
        program.append(tensor_tensor(found, found, row[: found.partitions, columns], AluOp.ADD))
        program.append(tensor_tensor(whole[:, columns], found, before[:, columns], AluOp.ADD))
        program.append(bn_stats(stats[:, place : place + STATS], whole[:, columns]))
        if columns.stop == features:
            stats = stats[:, : place + STATS]
            _normalise(program, outs.pop(rows.start), whole, stats, few, (gains, shifts), epsilon)

    return Normed(product(program, x_t, w, name=name, fmt=fmt, finish=finish), sums)


def _normalise(
    program: Program,
    outs: Sequence[tuple[Tensor, slice]],
    x: Tensor,
    stats: Tensor,
    moments: Tensor,
    scales: tuple[Tensor, Tensor],
    epsilon: float,
) -> None:
    mean, factor, shift = (moments[:, column : column + 1] for column in range(3))
    program.append(bn_aggr(moments[:, :2], stats))
    program.append(tensor_scalar(factor, factor, epsilon, AluOp.ADD, -0.5, AluOp.POWER))
    program.append(tensor_scalar(shift, mean, factor, AluOp.MULTIPLY, -1.0, AluOp.MULTIPLY))
    for out, columns in outs:
        # In PSUM, since the vector engine reads one operand of each memory per cycle.
        bank = program.space.psum("normalised", FP32, (program.config.psum_words,), x.partitions)
        for part in cut(columns.start, columns.stop, PIECE):
            here = slice(part.start - columns.start, part.stop - columns.start)
            gamma, beta = (row[: x.partitions, part] for row in scales)
            program.append(activation(bank[:, here], x[:, part], "identity", scale=factor, bias=shift))
            program.append(tensor_tensor(bank[:, here], bank[:, here], gamma, AluOp.MULTIPLY))
            program.append(tensor_tensor(out[:, here], bank[:, here], beta, AluOp.ADD))
