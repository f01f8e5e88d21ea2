"""FP32 division."""

import numpy as np

from neuroncore_rtl.golden.arith.codec import canonical

__all__ = ["divide_fp32"]


def divide_fp32(a, b) -> np.ndarray:
    """Return fp32(a / b), one rounding to nearest even, NaN canonical; float32 in and out, broadcast.

    x / 0 is an infinity unless x is 0 or NaN; 0 / 0 and Inf / Inf are NaN.
    """
    with np.errstate(all="ignore"):
        quotient = np.divide(np.asarray(a, np.float32), np.asarray(b, np.float32), dtype=np.float32)
    return canonical(np.asarray(quotient).view(np.uint32)).view(np.float32)
