"""Gradients of layer normalisation, y = (x - mean) / sqrt(variance + epsilon) * gamma + beta along each row."""

from typing import NamedTuple

from neuroncore_rtl.kernels.library.layernorm import inverse_deviation
from neuroncore_rtl.kernels.library.sums import sum_columns
from neuroncore_rtl.kernels.program import HbmTensor, Program
from neuroncore_rtl.kernels.program.instructions import (
    activation,
    scalar_tensor_tensor,
    tensor_scalar,
    tensor_tensor,
)
from neuroncore_rtl.kernels.tiling.rows import Rows, scratch, tiles_of
from neuroncore_rtl.kernels.tiling.transfer import load_row
from neuroncore_rtl.spec.formats import BF16
from neuroncore_rtl.spec.isa import AluOp

__all__ = ["LayernormGradients", "layernorm_backward"]


class LayernormGradients(NamedTuple):
    """Gradients of x, BF16 [tokens, features], and of gamma and beta, FP32 [1, features]."""

    x: Rows
    gamma: Rows
    beta: Rows


def layernorm_backward(
    program: Program,
    x: Rows,
    gamma: HbmTensor,
    dy: Rows,
    residual: Rows | None = None,
    before: tuple[Rows, Rows] | None = None,
    *,
    epsilon: float = 1e-5,
    name: str = "dx",
) -> LayernormGradients:
    """Append and return the gradients of x, gamma and beta; the statistics of x are recomputed.

    With n = (x - mean) / deviation and s = dy * gamma:
    dx = (s - mean(s) - n * mean(s * n)) / deviation + residual;  dgamma = sum(dy * n);  dbeta = sum(dy) over the rows.

    All matrices have tiles like x, which may be operands of the array; dy is BF16, gamma FP32 [features]. `before` are
    gradients of gamma and beta to add, FP32 [1, features].
    """
    gain, share = load_row(program, gamma), 1 / x.shape[1]
    dx, weighted = (scratch(program.space, label, x, fmt=BF16) for label in (name, "weighted"))
    normals, slopes, products = (scratch(program.space, label, x) for label in ("normal", "slopes", "products"))
    pairs, sums = (scratch(program.space, label, x, 2) for label in ("moments", "means"))
    others = residual.tiles if residual else [None] * len(x.tiles)
    tiles = zip(tiles_of(x, dy, dx, weighted, normals, slopes, products, pairs, sums), others, strict=True)
    for (tile, dout, out, weight, normal, slope, product, moments, means), other in tiles:
        inverse_deviation(program, moments, tile, epsilon)
        mean, inverse = moments[:, :1], moments[:, 1:]
        program.append(tensor_scalar(normal, tile, mean, AluOp.SUBTRACT, inverse, AluOp.MULTIPLY))
        program.append(tensor_tensor(weight, dout, normal, AluOp.MULTIPLY))
        program.append(tensor_tensor(slope, dout, gain[: tile.partitions], AluOp.MULTIPLY))
        program.append(activation(slope, slope, "identity", sum_into=means[:, :1]))
        program.append(tensor_tensor(product, slope, normal, AluOp.MULTIPLY))
        program.append(activation(product, product, "identity", sum_into=means[:, 1:]))
        program.append(tensor_scalar(means, means, share, AluOp.MULTIPLY))
        program.append(
            scalar_tensor_tensor(slope, normal, means[:, 1:], AluOp.MULTIPLY, slope, AluOp.SUBTRACT, reverse1=True)
        )
        last = out if other is None else slope
        program.append(tensor_scalar(last, slope, means[:, :1], AluOp.SUBTRACT, inverse, AluOp.MULTIPLY))
        if other is not None:
            program.append(tensor_tensor(out, slope, other, AluOp.ADD))
    gains, shifts = before or (None, None)
    return LayernormGradients(
        dx, sum_columns(program, weighted, gains, "dgamma"), sum_columns(program, dy, shifts, "dbeta")
    )
