"""Sums along the partitions of a matrix, which only the array can add up: a product with ones."""

from neuroncore_rtl.kernels.library.linear import linear
from neuroncore_rtl.kernels.program import Program, Rows
from neuroncore_rtl.kernels.program.instructions import memset
from neuroncore_rtl.spec.formats import FP32

__all__ = ["sum_columns"]


def sum_columns(program: Program, x: Rows, before: Rows | None = None, name: str = "sums") -> Rows:
    """Append and return the sums of the columns of a matrix, FP32 [1, columns].

    Arguments:
        program: what it is appended to.
        x: [rows, columns] of a format that the tensor engine multiplies.
        before: sums that are added to; None: there are none.
        name: of the result.
    """
    ones = program.space.sbuf("ones", x.format, (1,), max(tile.partitions for tile in x.tiles))
    program.append(memset(ones, 1.0))
    stationary = Rows(tuple(ones[: tile.partitions] for tile in x.tiles))
    return linear(program, stationary, x, residual=before, name=name, fmt=FP32)
