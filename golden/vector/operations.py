"""Element-wise operations of the vector engine."""

import numpy as np

from neuroncore_rtl.golden.arith import divide_fp32
from neuroncore_rtl.golden.vector.alu import alu
from neuroncore_rtl.spec.isa.alu import AluOp, Arithmetic

__all__ = ["apply", "chain", "nonzero", "reciprocal"]

_MAGNITUDE = np.uint32(0x7FFF_FFFF)
_ONE = np.float32(1)


def apply(op: AluOp, x, y, reverse: bool = False, arithmetic: Arithmetic = Arithmetic.FP32) -> np.ndarray:
    """Return op(x, y), or op(y, x) if `reverse`, for words that broadcast."""
    return alu(op, y, x, arithmetic) if reverse else alu(op, x, y, arithmetic)


def chain(a, s0, s1, op0: AluOp, op1: AluOp, reverse0=False, reverse1=False, arithmetic=Arithmetic.FP32) -> np.ndarray:
    """Return op1(op0(a, s0), s1); `reverse0` and `reverse1` swap the operands of op0 and op1.

    This is TENSOR_SCALAR, or SCALAR_TENSOR_TENSOR if s1 is a tensor.
    """
    return apply(op1, apply(op0, a, s0, reverse0, arithmetic), s1, reverse1, arithmetic)


def reciprocal(a) -> np.ndarray:
    """Return 1 / a for FP32 words, rounded once."""
    return divide_fp32(_ONE, np.asarray(a, np.uint32).view(np.float32)).view(np.uint32)


def nonzero(a) -> np.ndarray:
    """Return False for FP32 zeros, True for all other patterns, NaN included."""
    return np.asarray(a, np.uint32) & _MAGNITUDE != 0
