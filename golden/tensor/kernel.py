"""The column sums of the array: for every element of the result a chain of fused multiply-adds along K.

`column_sums_equation` and `accumulate_sums` say what a pass is, `multiply_tiles` computes the same bits over a thousand
times
faster: as a matrix product is computed fast, a tile of sums stays in vector registers while the loop runs along K,
compiled, with the processor's own fused multiply-add, which is the IEEE 754 operation with one rounding. Sums are
independent, so they fill the vectors; the order along K is never changed.
"""

from functools import cache

import numpy as np

from neuroncore_rtl.golden.arith import add_fp32, fma_fp32
from neuroncore_rtl.golden.arith.codec import canonical_value
from neuroncore_rtl.golden.arith.machine_code import compile_function, has_feature, has_fused_multiply_add
from neuroncore_rtl.golden.tensor.tile import TILE, build_pass

__all__ = [
    "TILE", "WIDTH", "Packed", "accumulate_sums", "column_sums", "column_sums_equation", "compile_pass",
    "multiply_tiles", "pack_tiles",
]  # fmt: skip

WIDTH = 64 if has_feature("avx512f") else 16
"""Moving columns of a block: sums of a tile, a row of it and a weight fill the vector registers."""


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


def accumulate_sums(psum, sums, integer: bool) -> np.ndarray:
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
    own = pack_tiles(stationary, TILE), _packed_mask("stationary", stationary_present, stationary, TILE)
    other = pack_tiles(moving, WIDTH), _packed_mask("moving", moving_present, moving, WIDTH)
    sums = np.empty((stationary.shape[1], moving.shape[1]), np.uint32)
    multiply_tiles(own, other, sums, init=init)
    return sums.view(np.float32)


def pack_tiles(operand: np.ndarray, size: int) -> np.ndarray:
    """Return an operand [K, columns], values, codes or flags, as [pieces, K, size]; the last piece is filled with 0.

    Arguments:
        operand: what is packed.
        size: TILE of the stationary, WIDTH of the moving operand.
    """
    rows, columns = operand.shape
    whole, rest = divmod(columns, size)
    pieces = operand[:, : whole * size].reshape(rows, whole, size).swapaxes(0, 1)
    if not rest:
        return np.ascontiguousarray(pieces)
    packed = np.zeros((whole + 1, rows, size), operand.dtype)
    packed[:whole] = pieces
    packed[whole, :, :rest] = operand[:, whole * size :]
    return packed


Packed = tuple[np.ndarray, np.ndarray | None]
"""Values and presence of an operand, as `golden.tensor.array_operand` has them, packed."""


def multiply_tiles(
    stationary: Packed, moving: Packed, psum: np.ndarray, *, accumulates=False, integer=False, init=0.0, fused=None
) -> None:
    """Do one pass of the array: what :func:`accumulate_sums` makes of PSUM and :func:`column_sums`.

    Arguments:
        stationary: of pieces of TILE columns; at least as many rows as the moving operand, and columns as `psum` rows.
        moving: of pieces of WIDTH columns; as many columns as `psum`, or more. Its rows are K.
        psum: uint32 [M, N], of adjacent columns; it is written where it is.
        accumulates: whether the sums are added to what PSUM holds.
        integer: whether that is INT32.
        init: as of :func:`column_sums`.
        fused: as of :func:`compile_pass`.
    """
    (w, w_present), (x, x_present) = stationary, moving
    masked = w_present is not None or x_present is not None
    if masked:
        w_present = np.ones(w.shape, bool) if w_present is None else w_present
        x_present = np.ones(x.shape, bool) if x_present is None else x_present
    else:
        w_present, x_present = w, x
    arrays = w, x, w_present, x_present, psum
    steps = (array.strides[0] // array.itemsize for array in arrays)
    compile_pass(masked, integer, fused)(*arrays, x.shape[1], *psum.shape, *steps, accumulates, init)


@cache
def compile_pass(masked: bool, integer: bool = False, fused: bool | None = None):
    """Return the compiled function of `multiply_tiles`, whose arguments :func:`golden.tensor.tile.build_pass` has.

    Arguments:
        masked: whether it looks at the masks.
        integer: whether PSUM holds INT32.
        fused: whether to use the processor's fused multiply-add; None: if it has one. Without it every step is a
            float64 sum and a cast, which for operands of 12 significand bits gives the same bits
            (:func:`golden.arith.fma_fp32`) at a fraction of the speed.
    """
    return compile_function(build_pass(WIDTH, masked, integer, has_fused_multiply_add() if fused is None else fused))


def _packed_mask(name: str, present, operand: np.ndarray, size: int) -> np.ndarray | None:
    if present is None:
        return None
    if np.shape(present) != operand.shape:
        raise ValueError(f"{name}_present must have the shape {operand.shape!r}, not {np.shape(present)!r}")
    return pack_tiles(np.asarray(present, bool), size)
