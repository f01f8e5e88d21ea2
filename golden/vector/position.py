"""Operations that depend on an element's position: indices, masks, dropout, transposed blocks."""

import numpy as np

from neuroncore_rtl.golden.vector.alu import alu
from neuroncore_rtl.spec.isa.alu import AluOp, Arithmetic

__all__ = ["affine_mask", "dropped", "iota", "transpose"]


def iota(numbers) -> np.ndarray:
    """Return element indices (uint64) modulo 2**32."""
    return (np.asarray(numbers, np.uint64) & np.uint64(0xFFFF_FFFF)).astype(np.uint32)


def affine_mask(numbers, op: AluOp) -> np.ndarray:
    """Return op(index, 0) for element indices, as INT32; op is a comparison."""
    return alu(op, iota(numbers), np.uint32(0), Arithmetic.INT32) != 0


def dropped(random, probability) -> np.ndarray:
    """Return True where random / 2**32 < probability, for random words and FP32 words; False for NaN."""
    with np.errstate(invalid="ignore"):
        return np.ldexp(np.asarray(random, np.float64), -32) < np.asarray(probability, np.uint32).view(np.float32)


def transpose(codes, block: int) -> np.ndarray:
    """Return codes [partitions, ..., block]; each square of `block` partitions and the last dimension is transposed."""
    groups = np.asarray(codes).reshape(-1, block, *np.shape(codes)[1:])
    return np.swapaxes(groups, 1, -1).reshape(np.shape(codes))
