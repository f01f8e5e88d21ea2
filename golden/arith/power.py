"""FP32 power: special cases. `golden.arith.power_kernel` computes the ordinary ones."""

import numpy as np

from neuroncore_rtl.golden.arith.numba_cache import cached_function
from neuroncore_rtl.spec import power as constants

__all__ = ["power_fp32"]


def power_fp32(a, b) -> np.ndarray:
    """Return a ** b, NaN canonical; float32 in and out, broadcast.

    Special cases of IEEE 754-2019 pow, in this order:

    1. x ** 0 and 1 ** y are 1, for a NaN too.
    2. A NaN gives NaN, and so does a negative finite base with a non-integer exponent.
    3. (-1) ** +-Inf is 1.
    4. A base of magnitude 0 or Inf, or an infinite exponent, gives the limit, 0 or Inf.

    An odd exponent keeps the sign of the base.
    """
    a, b = np.broadcast_arrays(np.asarray(a, np.float32), np.asarray(b, np.float32))
    size = np.abs(a)
    with np.errstate(invalid="ignore"):
        negative = np.signbit(a)
        integer = np.isinf(b) | (np.trunc(b) == b)
        odd = integer & (np.abs(b) < 1 << 24) & (np.fmod(b, 2) != 0)
        grows = (size > 1) ^ np.signbit(b)
    ordinary = np.isfinite(a) & np.isfinite(b) & (size != 0) & (size != 1)

    magnitude = np.where(grows, np.float32(np.inf), np.float32(0))
    magnitude[ordinary] = _powers(size[ordinary], b[ordinary])
    magnitude[size == 1] = 1
    result = np.where(negative & odd, -magnitude, magnitude)
    result[np.isnan(a) | np.isnan(b) | negative & np.isfinite(a) & (size != 0) & ~integer] = np.nan
    result[(b == 0) | (a == 1)] = 1
    return result


def _powers(size: np.ndarray, b: np.ndarray) -> np.ndarray:
    out = np.empty(len(size), np.uint32)
    tables = (np.array(table, np.int64) for table in (constants.RECIPROCAL, constants.LOGARITHM, constants.EXPONENTIAL))
    powers = cached_function("neuroncore_rtl.golden.arith.power_kernel", "powers")
    powers(size.view(np.uint32), b.view(np.uint32), *tables, out, len(out))
    return out.view(np.float32)
