"""The end of a transformer's sublayer: layernorm(x w + bias + residual), row by row as sums leave the array."""

from typing import NamedTuple

from neuroncore_rtl.kernels.library.blocks import cut
from neuroncore_rtl.kernels.library.product import product
from neuroncore_rtl.kernels.library.transfer import Matrix, load_row
from neuroncore_rtl.kernels.program import HbmTensor, Program, Rows, Tensor, scratch, tiles_of
from neuroncore_rtl.kernels.program.instructions import activation, bn_aggr, bn_stats, tensor_scalar, tensor_tensor
from neuroncore_rtl.spec.config import PSUM_WORDS
from neuroncore_rtl.spec.formats import BF16, FP32, Format
from neuroncore_rtl.spec.isa import AluOp
from neuroncore_rtl.spec.isa.elementwise import OUTPUTS, STATS_ELEMENTS, Opcode

__all__ = ["Normed", "Scales", "postnorm"]

STATS = OUTPUTS[Opcode.BN_STATS]

assert PSUM_WORDS <= STATS_ELEMENTS


class Scales(NamedTuple):
    """Parameters of a layer normalisation: gamma and beta, [features], in HBM, or as `load_row` brings them."""

    gamma: HbmTensor | Tensor
    beta: HbmTensor | Tensor


class Normed(NamedTuple):
    """What is returned: y, and what it is the normalisation of, in FP32; [tokens, outputs]."""

    y: Rows
    sums: Rows


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
    fmt: Format = BF16,
) -> Normed:
    """Append and return layernorm(x w + bias + residual) * gamma + beta.

    Arguments:
        program: what it is appended to.
        x_t: [inputs, tokens]; w: [inputs, outputs].
        bias: [outputs], in HBM, or as `load_row` brings it.
        residual: [tokens, outputs], in tiles that may be operands of the array.
        scales: of the normalisation.
        epsilon: what is added to a variance.
        name, fmt: of y.

    Raises:
        ValueError: if shapes or formats do not fit.
    """
    features = w.shape[1]
    for parameters in (bias, *scales):
        if parameters.shape != (features,):
            raise ValueError(f"{parameters.name}: shape must be [{features}], not {list(parameters.shape)}")
    if residual.shape != (x_t.shape[1], features):
        found = list(residual.shape)
        raise ValueError(f"{name}: residual must be {[x_t.shape[1], features]}, not {found}")
    row, gains, shifts = (load_row(program, one) if isinstance(one, HbmTensor) else one for one in (bias, *scales))
    pieces = len(cut(0, features, PSUM_WORDS))
    sums, statistics, moments = (
        scratch(program.space, f"{name}.{what}", residual, columns)
        for what, columns in (("sums", features), ("stats", pieces * STATS), ("moments", 3))
    )
    # The bias is there before the sums are.
    for tile, before in tiles_of(sums, residual):
        program.append(tensor_tensor(tile, before, row[: tile.partitions], AluOp.ADD))
    tiles = [matrix.by_first for matrix in (sums, statistics, moments)]
    outs: dict[int, list[Tensor]] = {}

    def finish(out: Tensor, found: Tensor, rows: slice, columns: slice) -> None:
        whole, stats, few = (own[rows.start] for own in tiles)
        outs.setdefault(rows.start, []).append(out)
        place = columns.start // PSUM_WORDS * STATS
        program.append(tensor_tensor(whole[:, columns], found, whole[:, columns], AluOp.ADD))
        program.append(bn_stats(stats[:, place : place + STATS], whole[:, columns]))
        if columns.stop == features:
            _normalise(program, outs.pop(rows.start), whole, stats, few, (gains, shifts), epsilon)

    return Normed(product(program, x_t, w, name=name, fmt=fmt, finish=finish), sums)


def _normalise(
    program: Program,
    outs: list[Tensor],
    x: Tensor,
    stats: Tensor,
    moments: Tensor,
    scales: tuple[Tensor, Tensor],
    epsilon: float,
) -> None:
    """Append outs = (x - mean) / sqrt(variance + epsilon) * gamma + beta, in pieces of a bank's columns."""
    mean, factor, shift = (moments[:, column : column + 1] for column in range(3))
    program.append(bn_aggr(moments[:, :2], stats))
    program.append(tensor_scalar(factor, factor, epsilon, AluOp.ADD, -0.5, AluOp.POWER))
    program.append(tensor_scalar(shift, mean, factor, AluOp.MULTIPLY, -1.0, AluOp.MULTIPLY))
    for out, columns in zip(outs, cut(0, x.size, PSUM_WORDS), strict=True):
        gamma, beta = (row[: x.partitions, columns] for row in scales)
        # In PSUM, as the vector engine takes an operand of each memory in a cycle.
        bank = program.space.psum("normalised", FP32, (PSUM_WORDS,), x.partitions)[:, : out.size]
        program.append(activation(bank, x[:, columns], "identity", scale=factor, bias=shift))
        program.append(tensor_tensor(bank, bank, gamma, AluOp.MULTIPLY))
        program.append(tensor_tensor(out, bank, beta, AluOp.ADD))
