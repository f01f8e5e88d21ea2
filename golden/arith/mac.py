"""Multiply-accumulate of a processing element, and FP32 addition: IEEE 754 binary32, one rounding to nearest even."""

import numpy as np

from neuroncore_rtl.golden.arith.codec import canonical_value, operand
from neuroncore_rtl.spec.formats import Format

__all__ = ["add_fp32", "fma_fp32", "mac"]


def fma_fp32(x, w, acc, absent=False) -> np.ndarray:
    """Return fp32(acc + x * w), product exact, one rounding to nearest even, NaN canonical; broadcast.

    `x` and `w` have at most 12 significand bits (`golden.arith.codec.operand`). Where `absent`, the result is
    acc.

    Computed as one float64 addition and one cast. These two roundings give the same result as a single one:

    - The product has at most 24 significand bits and an exponent from -298 to 255: exact in float64.
    - If the sum needs at most 53 bits, the addition is exact and only the cast rounds.
    - Otherwise one addend exceeds 2**28 times the other, and their bits do not overlap. The large addend has at most 24
      bits, so it is an FP32 value or (a product) rounds like one. The small addend moves the sum by less than a quarter
      of the last place, never onto or across a tie, in either rounding.
    - In FP32's subnormal range the large addend of an inexact sum is acc, a multiple of 2**-149 below 2**-126, and the
      product is below 2**-154: far from a tie. If the product were the large addend, the sum would fit in 53 bits.
    """
    with np.errstate(all="ignore"):
        product = np.multiply(x, w, dtype=np.float64)
        total = (np.asarray(acc, np.float64) + product).astype(np.float32)
    return canonical_value(np.where(absent, np.asarray(acc, np.float32), total))


def add_fp32(a, b) -> np.ndarray:
    """Return fp32(a + b), one rounding to nearest even, NaN canonical; float32 in and out. x + -x is +0."""
    with np.errstate(all="ignore"):
        return canonical_value(np.add(a, b, dtype=np.float32))


def mac(x_bits, w_bits, acc_bits, fmt: Format, x_half: str | None = None, w_half: str | None = None) -> np.ndarray:
    """Return `fma_fp32` of codes of `fmt` and of FP32 bit patterns `acc_bits`, as FP32 bit patterns.

    `x_half` and `w_half` select the half of an FP32 operand, "hi" or "lo". A zero low half is absent, so that its
    product with an infinity is no NaN.
    """
    acc = np.asarray(acc_bits, np.uint32).view(np.float32)
    x, w = operand(x_bits, fmt, x_half), operand(w_bits, fmt, w_half)
    absent = ((x_half == "lo") & (x == 0)) | ((w_half == "lo") & (w == 0))
    return fma_fp32(x, w, acc, absent).view(np.uint32)
