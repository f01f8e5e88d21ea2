"""FP32 remainders of a division, with the sign of the dividend or of the divisor."""

import numpy as np

from neuroncore_rtl.golden.arith.codec import canonical_value
from neuroncore_rtl.golden.arith.mac import add_fp32

__all__ = ["fmod_fp32", "mod_fp32"]


def fmod_fp32(a, b) -> np.ndarray:
    """Return the exact remainder a - b * trunc(a / b) in FP32, with the sign of a; NaN if a is infinite or b is 0."""
    with np.errstate(invalid="ignore"):
        return canonical_value(np.fmod(np.asarray(a, np.float64), np.asarray(b, np.float64)))


def mod_fp32(a, b) -> np.ndarray:
    """Return a - b * floor(a / b) with the sign of b.

    This is r = fmod_fp32(a, b), or fp32(r + b) if the signs of a nonzero r and b differ.
    """
    b = np.asarray(b, np.float32)
    rest = fmod_fp32(a, b)
    other = (rest != 0) & (np.signbit(rest) != np.signbit(b))
    signed = np.where(rest == 0, np.copysign(np.float32(0), b), rest)
    return canonical_value(np.where(other, add_fp32(rest, b), signed))
