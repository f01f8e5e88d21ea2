"""Whole matrix products, as a user would write them: tiles along K, and for FP32 four passes a tile."""

import numpy as np

from neuroncore_rtl.golden.arith import add_fp32, canonical
from neuroncore_rtl.golden.tensor.kernel import column_sums
from neuroncore_rtl.golden.tensor.operand import array_operand
from neuroncore_rtl.spec.formats import FP32, INT8, Format

__all__ = ["PASSES", "accumulate", "matrix_product"]

PASSES = ((0, 0), (0, 1), (1, 0), (1, 1))
"""The passes of an FP32 product in their order: half of the stationary, half of the moving operand."""


def matrix_product(a_bits, b_bits, fmt: Format, rows: int) -> np.ndarray:
    """Return the product of two matrices as the tensor engine leaves it in PSUM, however its M and N were tiled.

    Arguments:
        a_bits: codes of `fmt` [M, K], the stationary operand, transposed.
        b_bits: codes of `fmt` [K, N], the moving operand.
        fmt: one of `spec.formats.MATMUL_FORMATS`.
        rows: rows of the array, hence the length of the tiles along K.

    Returns:
        uint32 [M, N]: the FP32 patterns, or for INT8 those of INT32 (view them as int32).

    Raises:
        ValueError: if the shapes do not fit, `rows` is not positive, or as :func:`golden.arith.operand`.
    """
    a_bits, b_bits = np.asarray(a_bits), np.asarray(b_bits)
    if a_bits.ndim != 2 or b_bits.ndim != 2 or a_bits.shape[1] != b_bits.shape[0]:
        raise ValueError(f"operands must be [M, K] and [K, N], not {a_bits.shape!r} and {b_bits.shape!r}")
    if rows < 1:
        raise ValueError(f"rows must be at least 1, not {rows!r}")
    halves = (0, 1) if fmt == FP32 else (0,)
    stationary = [array_operand(a_bits.T, fmt, half) for half in halves]
    moving = [array_operand(b_bits, fmt, half) for half in halves]
    psum = None
    for first in range(0, len(b_bits), rows):
        tile = slice(first, first + rows)
        for stationary_half, moving_half in PASSES if fmt == FP32 else PASSES[:1]:
            (w, w_present), (x, x_present) = stationary[stationary_half], moving[moving_half]
            sums = column_sums(
                w[tile],
                x[tile],
                stationary_present=None if w_present is None else w_present[tile],
                moving_present=None if x_present is None else x_present[tile],
            )
            psum = accumulate(psum, sums, integer=fmt == INT8)
    return np.zeros((len(a_bits), b_bits.shape[1]), np.uint32) if psum is None else psum


def accumulate(psum, sums, integer: bool) -> np.ndarray:
    """Return what PSUM holds after column sums arrived.

    Arguments:
        psum: uint32, the words before; None if they are overwritten.
        sums: float32, their shape.
        integer: True adds the sums, which then are integers, as INT32 that wraps around; False adds FP32.

    Returns:
        uint32, the shape of `sums`.
    """
    if integer:
        words = sums.astype(np.int32).view(np.uint32)
        return words if psum is None else psum + words
    return canonical(sums.view(np.uint32)) if psum is None else add_fp32(psum.view(np.float32), sums).view(np.uint32)
