"""The column sums of the array: for every element of the result a chain of fused multiply-adds along K.

`column_sums_equation` says what they are, `column_sums` computes the same bits a hundred times faster: the same loops,
compiled, with the processor's own fused multiply-add, which is the IEEE 754 operation with one rounding. The columns of
a moving block are independent, so they fill the vector lanes; the order along K is never changed.
"""

from functools import cache

import numpy as np
from numba import njit

from neuroncore_rtl.golden.arith import canonical, fma_fp32
from neuroncore_rtl.golden.arith.fused import fused_multiply_add, has_fused_multiply_add

__all__ = ["column_sums", "column_sums_equation", "compile_chains"]

BLOCK = 64
"""Moving columns of a block: 128 rows of them are 32 KiB, which a first-level cache holds."""

STEP = 4
"""Rows for which a partial sum stays in a register. K is filled up to whole steps with +0 * -0, which changes no sum:
x + -0 is x for every x, both zeros included."""


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
    return _canonical(sums)


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
    masks = _mask("stationary", stationary_present, stationary), _mask("moving", moving_present, moving)
    masked = not all(mask.all() for mask in masks)
    operands = _whole_steps(stationary.T, 1, -0.0), _whole_steps(moving, 0, 0.0)
    if masked:
        masks = _whole_steps(masks[0].T, 1, True), _whole_steps(masks[1], 0, True)
    else:
        masks = tuple(np.broadcast_to(np.True_, operand.shape) for operand in operands)
    sums = np.full((stationary.shape[1], moving.shape[1]), init, np.float32)
    compile_chains(masked)(*operands, *masks, sums)
    return _canonical(sums)


@cache
def compile_chains(masked: bool, fused: bool | None = None):
    """Return the compiled kernel chains(weights, moving, weights_present, moving_present, sums).

    It continues the chains of `sums` [M, N] in place. K is a multiple of `STEP`.

    Arguments:
        masked: whether it looks at the masks.
        fused: whether to use the processor's fused multiply-add; None: if it has one. Without it every step is a
            float64 sum and a cast, which for operands of 12 significand bits gives the same bits
            (:func:`golden.arith.fma_fp32`) at a fraction of the speed.
    """
    fused = has_fused_multiply_add() if fused is None else fused
    fma = fused_multiply_add if fused else njit(_double_multiply_add)
    everything = not masked

    @njit
    def chains(weights, moving, weights_present, moving_present, sums):
        rows, columns = moving.shape
        for first in range(0, columns, BLOCK):
            block = slice(first, min(first + BLOCK, columns))
            for m in range(len(sums)):
                w, p, acc = weights[m], weights_present[m], sums[m, block]
                for r in range(0, rows, STEP):
                    w0, w1, w2, w3 = w[r], w[r + 1], w[r + 2], w[r + 3]
                    p0, p1, p2, p3 = p[r], p[r + 1], p[r + 2], p[r + 3]
                    x0, x1, x2, x3 = moving[r, block], moving[r + 1, block], moving[r + 2, block], moving[r + 3, block]
                    q0, q1 = moving_present[r, block], moving_present[r + 1, block]
                    q2, q3 = moving_present[r + 2, block], moving_present[r + 3, block]
                    for n in range(len(acc)):
                        total = acc[n]
                        total = fma(x0[n], w0, total) if everything or p0 & q0[n] else total
                        total = fma(x1[n], w1, total) if everything or p1 & q1[n] else total
                        total = fma(x2[n], w2, total) if everything or p2 & q2[n] else total
                        total = fma(x3[n], w3, total) if everything or p3 & q3[n] else total
                        acc[n] = total

    return chains


def _double_multiply_add(x, w, acc):
    return np.float32(np.float64(acc) + np.float64(x) * np.float64(w))


def _mask(name: str, present, operand: np.ndarray) -> np.ndarray:
    if present is None:
        return np.broadcast_to(np.True_, operand.shape)
    if np.shape(present) != operand.shape:
        raise ValueError(f"{name}_present must have the shape {operand.shape!r}, not {np.shape(present)!r}")
    return np.asarray(present, bool)


def _whole_steps(operand: np.ndarray, axis: int, neutral) -> np.ndarray:
    """Return an operand, contiguous, with K on `axis` filled up to whole steps."""
    missing = -operand.shape[axis] % STEP
    if missing:
        shape = [*operand.shape]
        shape[axis] = missing
        operand = np.concatenate((operand, np.full(shape, neutral, operand.dtype)), axis)
    return np.ascontiguousarray(operand)


def _canonical(sums: np.ndarray) -> np.ndarray:
    return canonical(sums.view(np.uint32)).view(np.float32)
