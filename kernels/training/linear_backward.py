"""The gradients of a linear layer y = x w + bias. Each of them is a linear layer itself:

* dx = dy w.T is contracted over the outputs, so dy has them along the partitions; w is transposed.
* dw = x.T dy is contracted over the tokens, so x and dy have these along the partitions, as `linear` leaves them.
* dbias is the sum of dy over the tokens.
"""

from neuroncore_rtl.kernels.library.linear import linear
from neuroncore_rtl.kernels.library.product import product
from neuroncore_rtl.kernels.library.sums import sum_columns
from neuroncore_rtl.kernels.library.transpose import transpose
from neuroncore_rtl.kernels.program import Program, Rows, Tensor
from neuroncore_rtl.kernels.program.instructions import tensor_tensor
from neuroncore_rtl.kernels.tiling.transfer import Matrix, on_chip
from neuroncore_rtl.spec.formats import BF16, FP32, Format
from neuroncore_rtl.spec.isa import AluOp

__all__ = ["bias_gradient", "input_gradient", "input_gradient_t", "weight_gradient"]


def input_gradient(
    program: Program,
    dy_t: Matrix,
    w: Matrix,
    matrix: Tensor,
    residual: Rows | None = None,
    *,
    name: str = "dx",
    fmt: Format = BF16,
) -> Rows:
    """Append and return dx = dy w.T + residual, [tokens, inputs].

    Arguments:
        program: what it is appended to.
        dy_t: [outputs, tokens]; w: [inputs, outputs].
        matrix: an identity matrix of w's format (:func:`kernels.library.transpose.identity`).
        residual: the gradient of x by another way, [tokens, inputs] in tiles like the result's; None: there is none.
        name, fmt: of the result.

    Raises:
        ValueError: if shapes or formats do not fit.
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
    fmt: Format = BF16,
) -> Rows:
    """Append and return dx_t = (w dy_t) * slopes, [inputs, tokens].

    Arguments:
        program: what it is appended to.
        w, dy_t, matrix: see `input_gradient`.
        slopes: the derivatives of the function that made x of a layer's sums, [inputs, tokens] in tiles like the
            result's: then the result is the gradient of the sums; None: there was none.
        name, fmt: of the result.

    Raises:
        ValueError: if shapes or formats do not fit.
    """
    w_t = transpose(program, on_chip(program, w), matrix, "w_t")
    if slopes is None:
        return linear(program, w_t, dy_t, name=name, fmt=fmt)
    factors = slopes.by_first

    def finish(out: Tensor, sums: Tensor, rows: slice, columns: slice) -> None:
        program.append(tensor_tensor(out, sums, factors[rows.start][:, columns], AluOp.MULTIPLY))

    return product(program, w_t, dy_t, name=name, fmt=fmt, finish=finish)


def weight_gradient(program: Program, x: Matrix, dy: Matrix, before: Rows | None = None, name: str = "dw") -> Rows:
    """Append and return dw = x.T dy + before, FP32 [inputs, outputs].

    Arguments:
        program: what it is appended to.
        x: [tokens, inputs]; dy: [tokens, outputs]; what is in SBUF is in tiles of the same tokens.
        before: a gradient that is added to, FP32 in tiles like the result's; None: there is none.
        name: of the result.

    Raises:
        ValueError: if shapes or formats do not fit.
    """
    return linear(program, x, dy, residual=before, name=name, fmt=FP32)


def bias_gradient(program: Program, dy: Rows, before: Rows | None = None, name: str = "dbias") -> Rows:
    """Append and return dbias, the sum of dy [tokens, outputs] over the tokens + before, FP32 [1, outputs]."""
    return sum_columns(program, dy, before, name)
