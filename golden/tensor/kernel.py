"""Column sums of the array: for every element of the result a chain of fused multiply-adds along K.

`column_sums_equation` and `accumulate_sums` define a pass. `multiply_tiles` computes the same bits over a thousand
times faster: compiled code keeps a tile of sums in vector registers while it loops along K, and uses the processor's
IEEE 754 fused multiply-add. The vectors hold independent sums; the order along K never changes.
"""

from functools import cache

import numpy as np

from neuroncore_rtl.golden.arith import add_fp32, fma_fp32
from neuroncore_rtl.golden.arith.codec import canonical_value
from neuroncore_rtl.golden.arith.machine_code import compile_function, has_feature, has_fused_multiply_add
from neuroncore_rtl.golden.tensor.tile import TILE, build_pass

__all__ = [
    "WIDTH", "Packed", "accumulate_sums", "column_sums", "column_sums_equation", "compile_pass",
    "multiply_tiles", "pack_tiles",
]  # fmt: skip

WIDTH = 64 if has_feature("avx512f") else 16
"""Moving columns of a block: a tile's sums, one row of the block and a weight fill the vector registers."""


def column_sums_equation(stationary, moving, *, stationary_present=None, moving_present=None) -> np.ndarray:
    """Return the result of `column_sums`, computed row by row with `golden.arith.fma_fp32`."""
    rows, partitions = stationary.shape
    sums = np.full((partitions, moving.shape[1]), -0.0, np.float32)
    for row in range(rows):
        present = np.ones(sums.shape, bool)
        if stationary_present is not None:
            present &= stationary_present[row][:, np.newaxis]
        if moving_present is not None:
            present &= moving_present[row]
        sums = np.where(present, fma_fp32(moving[row], stationary[row][:, np.newaxis], sums), sums)
    return canonical_value(sums)


def accumulate_sums(psum, sums, integer: bool) -> np.ndarray:
    """Return the PSUM words (uint32) after column sums are added to them, or overwrite them.

    `psum` has the previous words, or is None to overwrite them. The sums are float32 with canonical NaN; `integer` adds
    the sums, then integers, as wrapping INT32.
    """
    if integer:
        words = sums.astype(np.int32).view(np.uint32)
        return words if psum is None else psum + words
    return sums.view(np.uint32) if psum is None else add_fp32(psum.view(np.float32), sums).view(np.uint32)


def column_sums(stationary, moving, *, stationary_present=None, moving_present=None) -> np.ndarray:
    """Return the column sums of one pass of the array: float32 [M, N], NaN canonical.

    The sum s of column n and partition m starts at -0, the neutral element of addition. For row 0, 1, ... it becomes
    fp32(s + moving[row, n] * stationary[row, m]), one rounding to nearest even, unless an operand is absent.

    The operands are float32 [K, M] and [K, N] of at most 12 significand bits (`golden.arith.operand`). A mask has
    the shape of its operand, False where it is absent; None: all are present.
    """
    stationary, moving = np.asarray(stationary, np.float32), np.asarray(moving, np.float32)
    if stationary.ndim != 2 or moving.ndim != 2 or len(stationary) != len(moving):
        raise ValueError(f"operands must be [K, M] and [K, N], not {stationary.shape!r} and {moving.shape!r}")
    own = pack_tiles(stationary, TILE), _packed_mask("stationary", stationary_present, stationary, TILE)
    other = pack_tiles(moving, WIDTH), _packed_mask("moving", moving_present, moving, WIDTH)
    sums = np.empty((stationary.shape[1], moving.shape[1]), np.uint32)
    multiply_tiles(own, other, sums)
    return sums.view(np.float32)


def pack_tiles(operand: np.ndarray, size: int) -> np.ndarray:
    """Return values, codes or flags [K, columns] as [pieces, K, size]; the last piece is padded with 0.

    `size` is TILE for the stationary, WIDTH for the moving operand.
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
"""Packed values and presence of an operand, see `golden.tensor.array_operand`."""


def multiply_tiles(
    stationary: Packed, moving: Packed, psum: np.ndarray, *, accumulates=False, integer=False, fused=None
) -> None:
    """Compute the `column_sums` of one pass of the array and accumulate them in PSUM, as `accumulate_sums` does.

    The stationary operand is packed in tiles of TILE columns and has at least K rows and M columns, the moving operand
    in blocks of WIDTH columns, K rows and at least N columns. `psum`, uint32 [M, N] with contiguous columns, is written
    in place; `integer` tells whether it holds INT32. For `fused` see `compile_pass`.
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
    compile_pass(masked, integer, fused)(*arrays, x.shape[1], *psum.shape, *steps, accumulates)


@cache
def compile_pass(masked: bool, integer: bool = False, fused: bool | None = None):
    """Return the compiled function of `golden.tensor.tile.build_pass`.

    `fused` selects fused multiply-adds; None selects them if the processor has them. Otherwise every step is a float64
    sum and a cast: slower, but the same bits for operands of 12 significand bits (`golden.arith.fma_fp32`).
    """
    return compile_function(build_pass(WIDTH, masked, integer, has_fused_multiply_add() if fused is None else fused))


def _packed_mask(name: str, present, operand: np.ndarray, size: int) -> np.ndarray | None:
    if present is None:
        return None
    if np.shape(present) != operand.shape:
        raise ValueError(f"{name}_present must have the shape {operand.shape!r}, not {np.shape(present)!r}")
    return pack_tiles(np.asarray(present, bool), size)
