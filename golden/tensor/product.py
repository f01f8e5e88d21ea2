"""Whole matrix products, as a user would write them: tiles along K, and for FP32 four passes a tile."""

from concurrent.futures import ThreadPoolExecutor
from os import cpu_count

import numpy as np

from neuroncore_rtl.golden.arith import add_fp32
from neuroncore_rtl.golden.tensor.kernel import column_sums
from neuroncore_rtl.golden.tensor.operand import array_operand
from neuroncore_rtl.spec.formats import FP32, INT8, Format

__all__ = ["PASSES", "SHARED", "accumulate", "matrix_product"]

PASSES = ((0, 0), (0, 1), (1, 0), (1, 1))
"""The passes of an FP32 product in their order: half of the stationary, half of the moving operand."""

SHARED = 1 << 25
"""Multiply-adds from which on a product is worth more than one thread."""

BLOCK = 256
"""Moving columns that a thread multiplies at a time: what PSUM holds of them stays in a second-level cache."""


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
    transposed = np.ascontiguousarray(a_bits.T)
    stationary = [array_operand(transposed, fmt, half) for half in halves]

    def product(columns: slice) -> np.ndarray:
        moving = [array_operand(b_bits[:, columns], fmt, half) for half in halves]
        return _product(stationary, moving, rows, integer=fmt == INT8)

    if a_bits.size * b_bits.shape[1] < SHARED:
        return product(slice(None))
    with ThreadPoolExecutor(cpu_count()) as pool:
        found = pool.map(product, [slice(first, first + BLOCK) for first in range(0, b_bits.shape[1], BLOCK)])
        return np.concatenate([*found], axis=1)


def _product(stationary, moving, rows: int, *, integer: bool) -> np.ndarray:
    """Return what PSUM holds after a product of operands, each a list of halves of values and presence."""
    (first, _), (other, _) = stationary[0], moving[0]
    psum = np.zeros((first.shape[1], other.shape[1]), np.uint32)
    for row in range(0, len(first), rows):
        tile = slice(row, row + rows)
        for number, (stationary_half, moving_half) in enumerate(PASSES if len(stationary) > 1 else PASSES[:1]):
            (w, w_present), (x, x_present) = stationary[stationary_half], moving[moving_half]
            sums = column_sums(
                w[tile],
                x[tile],
                stationary_present=None if w_present is None else w_present[tile],
                moving_present=None if x_present is None else x_present[tile],
            )
            psum = accumulate(psum if row or number else None, sums, integer)
    return psum


def accumulate(psum, sums, integer: bool) -> np.ndarray:
    """Return what PSUM holds after column sums arrived.

    Arguments:
        psum: uint32, the words before; None if they are overwritten.
        sums: float32, their shape, NaN canonical.
        integer: True adds the sums, which then are integers, as INT32 that wraps around; False adds FP32.

    Returns:
        uint32, the shape of `sums`.
    """
    if integer:
        words = sums.astype(np.int32).view(np.uint32)
        return words if psum is None else psum + words
    return sums.view(np.uint32) if psum is None else add_fp32(psum.view(np.float32), sums).view(np.uint32)
