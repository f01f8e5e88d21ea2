"""Whole matrix products: tiles along K, and four passes per tile for FP32."""

from concurrent.futures import ThreadPoolExecutor
from os import cpu_count

import numpy as np

from neuroncore_rtl.golden.arith import storage_dtype
from neuroncore_rtl.golden.tensor.kernel import WIDTH, Packed, multiply_tiles, pack_tiles
from neuroncore_rtl.golden.tensor.operand import array_operand
from neuroncore_rtl.golden.tensor.tile import TILE
from neuroncore_rtl.spec.formats import FP32, INT8, Format

__all__ = ["PASSES", "SHARED", "matrix_product"]

PASSES = ((0, 0), (0, 1), (1, 0), (1, 1))
"""Passes of an FP32 product in order: half of the stationary, half of the moving operand."""

SHARED = 1 << 25
"""Minimum multiply-adds of a product that is split over threads."""

BLOCK = 256
"""Moving columns per task: their part of PSUM stays in a second-level cache."""


def matrix_product(a_bits, b_bits, fmt: Format, rows: int) -> np.ndarray:
    """Return the product of codes of `fmt` [M, K] and [K, N] as the tensor engine computes it, uint32 [M, N].

    Results are FP32 patterns; for INT8, INT32 (view as int32). They do not depend on the tiling of M and N, but on the
    `rows` of the array, the tile length along K. The [M, K] operand is the stationary one.
    """
    a_bits, b_bits = np.asarray(a_bits), np.asarray(b_bits)
    if a_bits.ndim != 2 or b_bits.ndim != 2 or a_bits.shape[1] != b_bits.shape[0]:
        raise ValueError(f"operands must be [M, K] and [K, N], not {a_bits.shape!r} and {b_bits.shape!r}")
    if rows < 1:
        raise ValueError(f"rows must be at least 1, not {rows!r}")
    a_bits, b_bits = (bits.astype(storage_dtype(fmt), copy=False) for bits in (a_bits, b_bits))
    psum = np.zeros((len(a_bits), b_bits.shape[1]), np.uint32)
    stationary = _halves(pack_tiles(a_bits.T, TILE), fmt)

    def product(first: int) -> None:
        part = slice(first, first + BLOCK)
        _multiply(
            stationary, _halves(pack_tiles(b_bits[:, part], WIDTH), fmt), psum[:, part], rows, integer=fmt == INT8
        )

    blocks = range(0, psum.shape[1], BLOCK)
    if psum.size * a_bits.shape[1] < SHARED:
        list(map(product, blocks))
    else:
        with ThreadPoolExecutor(cpu_count()) as pool:
            list(pool.map(product, blocks))
    return psum


def _halves(codes: np.ndarray, fmt: Format) -> list[Packed]:
    return [array_operand(codes, fmt, half) for half in ((0, 1) if fmt == FP32 else (0,))]


def _multiply(stationary: list[Packed], moving: list[Packed], psum: np.ndarray, rows: int, *, integer: bool) -> None:
    passes = PASSES if len(stationary) > 1 else PASSES[:1]
    for row in range(0, moving[0][0].shape[1], rows):
        for number, (own, other) in enumerate(passes):
            rest, moved = (_rows(one, slice(row, row + rows)) for one in (stationary[own], moving[other]))
            multiply_tiles(rest, moved, psum, accumulates=row + number > 0, integer=integer)


def _rows(operand: Packed, rows: slice) -> Packed:
    values, present = operand
    return values[:, rows], None if present is None else present[:, rows]
