"""The column sums of the array: for every element of the result a chain of fused multiply-adds along K.

`column_sums_equation` says what they are, `column_sums` computes the same bits over a hundred times faster: as a matrix
product is computed fast, a tile of sums stays in vector registers while the loop runs along K, compiled, with the
processor's own fused multiply-add, which is the IEEE 754 operation with one rounding. Sums are independent, so they
fill the vectors; the order along K is never changed.
"""

from functools import cache

import numpy as np
from numba import njit

from neuroncore_rtl.golden.arith import fma_fp32
from neuroncore_rtl.golden.arith.codec import canonical_value
from neuroncore_rtl.golden.arith.fused import has_feature, has_fused_multiply_add
from neuroncore_rtl.golden.tensor.tile import TILE, compile_tile

__all__ = ["column_sums", "column_sums_equation", "compile_chains"]


def column_sums_equation(stationary, moving, *, stationary_present=None, moving_present=None, init=0.0) -> np.ndarray:
    """Return what :func:`column_sums` returns, computed row by row with :func:`golden.arith.fma_fp32`."""
    rows, partitions = stationary.shape
    sums = np.full((partitions, moving.shape[1]), init, np.float32)
    for row in range(rows):
        present = np.ones(sums.shape, bool)
        if stationary_present is not None:
            present &= stationary_present[row][:, np.newaxis]
        if moving_present is not None:
            present &= moving_present[row]
        sums = np.where(present, fma_fp32(moving[row], stationary[row][:, np.newaxis], sums), sums)
    return canonical_value(sums)


def column_sums(stationary, moving, *, stationary_present=None, moving_present=None, init=0.0) -> np.ndarray:
    """Return the column sums of one pass of the array.

    A sum s of column n and partition m starts at `init`; then for row 0, 1, ... it becomes
    fp32(s + moving[row, n] * stationary[row, m]) with one rounding to nearest even, unless an operand is absent.

    Arguments:
        stationary: float32 [K, M], of at most 12 significand bits (:func:`golden.arith.operand`).
        moving: float32 [K, N], likewise.
        stationary_present, moving_present: bool, the shape of the operand; False where it is absent. None: all present.
        init: what the chains start with, +0 or -0.

    Returns:
        float32 [M, N], NaN canonical.

    Raises:
        ValueError: if K differs between the operands, or a mask has not the shape of its operand.
    """
    stationary, moving = np.asarray(stationary, np.float32), np.asarray(moving, np.float32)
    if stationary.ndim != 2 or moving.ndim != 2 or len(stationary) != len(moving):
        raise ValueError(f"operands must be [K, M] and [K, N], not {stationary.shape!r} and {moving.shape!r}")
    masked = stationary_present is not None or moving_present is not None
    masks = _mask("stationary", stationary_present, stationary), _mask("moving", moving_present, moving)
    if masked:
        masks = _whole_tiles(masks[0]), np.ascontiguousarray(masks[1])
    sums = np.full((stationary.shape[1], moving.shape[1]), init, np.float32)
    compile_chains(masked)(_whole_tiles(stationary), moving, *masks, sums)
    return sums


@cache
def compile_chains(masked: bool, fused: bool | None = None):
    """Return the compiled kernel chains(stationary, moving, stationary_present, moving_present, sums).

    It continues the chains of `sums` [M, N] in place and makes their NaN canonical. Columns of the stationary operand
    [K, M] and of its mask are filled up to a multiple of `TILE`.

    Arguments:
        masked: whether it looks at the masks.
        fused: whether to use the processor's fused multiply-add; None: if it has one. Without it every step is a
            float64 sum and a cast, which for operands of 12 significand bits gives the same bits
            (:func:`golden.arith.fma_fp32`) at a fraction of the speed.
    """
    # A tile of sums and a row of moving columns fit the vector registers.
    width = 32 if has_feature("avx512f") else 16
    tile = compile_tile(width, masked, has_fused_multiply_add() if fused is None else fused)

    @njit(nogil=True)
    def chains(stationary, moving, stationary_present, moving_present, sums):
        rows, columns = moving.shape
        partitions = len(sums)
        # Adjacent in memory, rows of a block stay in the first-level cache whatever their pitch was.
        block, present = np.zeros((rows, width), np.float32), np.ones((rows, width), np.bool_)
        found = np.zeros((TILE, width), np.float32)
        for first in range(0, columns, width):
            count = min(width, columns - first)
            for row in range(rows):
                _copy(moving[row, first:], block[row], count)
                if masked:
                    _copy(moving_present[row, first:], present[row], count)
            for top in range(0, partitions, TILE):
                height = min(TILE, partitions - top)
                for m in range(height):
                    _copy(sums[top + m, first:], found[m], count)
                tile(stationary, block, stationary_present, present, found, top)
                for m in range(height):
                    _copy(found[m], sums[top + m, first:], count)

    return chains


@njit
def _copy(source, target, count):
    for n in range(count):
        target[n] = source[n]


def _mask(name: str, present, operand: np.ndarray) -> np.ndarray:
    if present is None:
        return np.broadcast_to(np.True_, operand.shape)
    if np.shape(present) != operand.shape:
        raise ValueError(f"{name}_present must have the shape {operand.shape!r}, not {np.shape(present)!r}")
    return np.asarray(present, bool)


def _whole_tiles(operand: np.ndarray) -> np.ndarray:
    """Return a stationary operand or its mask, contiguous, its columns filled up to whole tiles."""
    missing = -operand.shape[1] % TILE
    return np.ascontiguousarray(np.pad(operand, ((0, 0), (0, missing))) if missing else operand)
