"""Sums of the columns of a matrix, by a product with ones, since only the array adds along partitions."""

from neuroncore_rtl.kernels.library.linear import linear
from neuroncore_rtl.kernels.program import Program
from neuroncore_rtl.kernels.program.instructions import memset
from neuroncore_rtl.kernels.source import located
from neuroncore_rtl.kernels.tiling.rows import Rows, as_rows
from neuroncore_rtl.spec.formats import FP32

__all__ = ["sum_columns"]


@located
def sum_columns(program: Program, x: Rows, before: Rows | None = None, name: str = "sums") -> Rows:
    """Append and return the sums of the columns of x, plus the sums `before`, FP32 [1, columns].

    The tensor engine must be able to multiply the format of x.
    """
    x = as_rows(x, "x")
    ones = program.space.sbuf("ones", x.format, (1,), max(tile.partitions for tile in x.tiles))
    program.append(memset(ones, 1.0))
    stationary = Rows(tuple(ones[: tile.partitions] for tile in x.tiles))
    return linear(program, stationary, x, residual=before, name=name, fmt=FP32)
