"""Gradients of a linear layer y = x w + bias; each is a linear layer itself.

* dx = dy w.T contracts over outputs, so dy has outputs along the partitions; w is transposed.
* dw = x.T dy contracts over tokens, so x and dy have tokens along the partitions, like the result of `linear`.
* dbias is the sum of dy over tokens.
"""

from neuroncore_rtl.kernels.library.linear import linear
from neuroncore_rtl.kernels.library.product import product
from neuroncore_rtl.kernels.library.sums import sum_columns
from neuroncore_rtl.kernels.library.transpose import transpose
from neuroncore_rtl.kernels.program import Program, Tensor
from neuroncore_rtl.kernels.tiling.rows import Rows
from neuroncore_rtl.kernels.tiling.transfer import Matrix, on_chip
from neuroncore_rtl.spec.formats import BF16, FP32, Format

__all__ = ["bias_gradient", "input_gradient", "input_gradient_t", "weight_gradient"]


def input_gradient(
    program: Program,
    dy_t: Matrix,
    w: Matrix,
    matrix: Tensor,
    residual: Rows | None = None,
    *,
    name: str = "dx",
    fmt: Format | str = BF16,
) -> Rows:
    """Append and return dx = dy w.T + residual, [tokens, inputs].

    `matrix` is an identity matrix in the format of w [inputs, outputs]. The residual has tiles like the result.
    """
    w_t = transpose(program, on_chip(program, w), matrix, "w_t")
    return linear(program, dy_t, w_t, residual=residual, name=name, fmt=fmt)


def input_gradient_t(
    program: Program,
    w: Matrix,
    dy_t: Matrix,
    matrix: Tensor,
    slopes: Rows | None = None,
    *,
    name: str = "dx_t",
    fmt: Format | str = BF16,
) -> Rows:
    """Append and return dx_t = (w dy_t) * slopes, [inputs, tokens].

    Slopes are the derivatives of the activation function that gave x, in tiles like the result's; the result is then
    the gradient of the operand of this function. `matrix` is as in `input_gradient`.
    """
    w_t = transpose(program, on_chip(program, w), matrix, "w_t")
    if slopes is None:
        return linear(program, w_t, dy_t, name=name, fmt=fmt)
    return product(program, w_t, dy_t, name=name, fmt=fmt, factors=slopes)


def weight_gradient(program: Program, x: Matrix, dy: Matrix, before: Rows | None = None, name: str = "dw") -> Rows:
    """Append and return dw = x.T dy + before, FP32 [inputs, outputs].

    Operands in SBUF have tiles of the same tokens; `before` has tiles like the result.
    """
    return linear(program, x, dy, residual=before, name=name, fmt=FP32)


def bias_gradient(program: Program, dy: Rows, before: Rows | None = None, name: str = "dbias") -> Rows:
    """Append and return `before` plus the bias gradient, which is the sum of dy over tokens: FP32 [1, outputs]."""
    return sum_columns(program, dy, before, name)
