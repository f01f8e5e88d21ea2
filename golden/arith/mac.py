"""The multiply-accumulate of a processing element and the FP32 adder: IEEE 754 binary32, one rounding, RNE."""

import numpy as np

from neuroncore_rtl.golden.arith.codec import canonical_value, operand
from neuroncore_rtl.spec.formats import Format

__all__ = ["add_fp32", "fma_fp32", "mac"]


def fma_fp32(x, w, acc, absent=False) -> np.ndarray:
    """Return fp32(acc + x * w), product exact, one rounding to nearest even, NaN canonical.

    Arguments:
        x, w: float32 of at most 12 significand bits each (:func:`golden.arith.codec.operand`).
        acc: float32.
        absent: bool; where True, acc passes on whatever x and w are.

    Returns:
        float32, the broadcast shape.

    Computed as one float64 addition and one cast, which rounds twice and yet as once:

    - The product has at most 24 significand bits and an exponent between -298 and 255, so float64 holds it exactly.
    - Where the sum needs at most 53 bits the addition is exact, and only the cast rounds.
    - Else one addend is more than 2**28 times the other, so large and small bits don't overlap. The large one has at
      most 24 bits, hence it is an FP32 value or (a product) rounds like one: the small one moves the sum by less than a
      quarter of the last place, never onto or across a tie, in either rounding.
    - In the subnormal range of FP32 the large addend of an inexact sum is acc, a multiple of 2**-149 below 2**-126, and
      the product is below 2**-154: again far from a tie. Were the product the large one, the sum would fit in 53 bits.
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
    """Return :func:`fma_fp32` of codes, as FP32 bit patterns.

    Arguments:
        x_bits, w_bits: codes of `fmt`.
        acc_bits: FP32 bit patterns.
        fmt: FP32 or one of `spec.formats.MAC_FORMATS`.
        x_half, w_half: which half of an FP32 operand this pass multiplies, "hi" or "lo"; None for other formats. The
            zero of a low half is absent: an infinity that meets it makes no NaN.

    Raises:
        ValueError: as :func:`golden.arith.codec.operand`.
    """
    acc = np.asarray(acc_bits, np.uint32).view(np.float32)
    x, w = operand(x_bits, fmt, x_half), operand(w_bits, fmt, w_half)
    absent = ((x_half == "lo") & (x == 0)) | ((w_half == "lo") & (w == 0))
    return fma_fp32(x, w, acc, absent).view(np.uint32)
