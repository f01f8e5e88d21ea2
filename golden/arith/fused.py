"""FP32 multiplication and fused multiply-add of any operands: IEEE 754 binary32, one rounding, RNE."""

from functools import cache
from platform import machine

import numpy as np
from llvmlite import binding
from numba import float32, types, vectorize
from numba.extending import intrinsic

from neuroncore_rtl.golden.arith.codec import canonical_value

__all__ = [
    "has_feature", "has_fused_multiply_add", "multiply_add_exactly", "multiply_add_fp32", "multiply_fp32",
]  # fmt: skip


def multiply_fp32(a, b) -> np.ndarray:
    """Return fp32(a * b), one rounding to nearest even, NaN canonical; float32 in and out."""
    with np.errstate(all="ignore"):
        return canonical_value(np.multiply(a, b, dtype=np.float32))


def multiply_add_fp32(a, b, c) -> np.ndarray:
    """Return fp32(a * b + c), product exact, one rounding to nearest even, NaN canonical.

    Arguments:
        a, b, c: float32 of any significand, any shapes that broadcast.

    Returns:
        float32, the broadcast shape.

    Computed with the processor's fused multiply-add, which is the IEEE 754 operation, where it has one.
    """
    if not has_fused_multiply_add():
        return multiply_add_exactly(a, b, c)
    with np.errstate(all="ignore"):
        return canonical_value(_compiled()(*(np.asarray(operand, np.float32) for operand in (a, b, c))))


def multiply_add_exactly(a, b, c) -> np.ndarray:
    """Return what :func:`multiply_add_fp32` returns, on any processor.

    The product of two 24-bit significands is exact in float64. The sum is rounded to odd there: where it is inexact
    the last bit is set, so that it is never on a tie of FP32, and the cast rounds as if it saw the exact sum (53 bits
    are more than 24 + 2). What the addition lost is the error term of Knuth's two-sum, itself exact.
    """
    with np.errstate(all="ignore"):
        product = np.multiply(a, b, dtype=np.float64)
        c = np.asarray(c, np.float32).astype(np.float64)
        total = np.asarray(product + c)
        of_c = total - product
        error = (product - (total - of_c)) + (c - of_c)
        word = total.view(np.int64)
        odd = np.isfinite(total) & (error != 0) & (word & 1 == 0)
        # The bits of a float64 count its magnitude.
        word = word + np.where(odd, np.where((error > 0) == (total > 0), 1, -1), 0)
        return canonical_value(word.view(np.float64).astype(np.float32))


def has_fused_multiply_add() -> bool:
    """Return whether this processor multiplies and adds with one rounding."""
    return machine() in ("aarch64", "arm64") or has_feature("fma")


@cache
def has_feature(name: str) -> bool:
    """Return whether this processor has a feature, by LLVM's name for it."""
    return binding.get_host_cpu_features().get(name, False)


@intrinsic
def fused_multiply_add(typing_context, a, b, c):
    """The processor's fused multiply-add of three float32, for compiled functions; slow and right without one."""

    def generate(context, builder, signature, arguments):
        return builder.fma(*arguments)

    return types.float32(types.float32, types.float32, types.float32), generate


@cache
def _compiled():
    @vectorize([float32(float32, float32, float32)])
    def multiply_add(a, b, c):
        return fused_multiply_add(a, b, c)

    return multiply_add
