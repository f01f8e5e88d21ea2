"""The FP32 power, to the bit of the hardware: tables and polynomials in fixed point, compiled.

With a = m * 2**e, m in [1, 2), and b = +-s * 2**f, all in integers, where [x] is the largest integer not above x and
the constants are those of `spec/power.py`:

    row      = the six leading fraction bits of m
    r        = m * RECIPROCAL[row] - 1, exactly
    q        = log2(1 + r) / r - 3/2, by Horner's rule in units of 2**-32, the last sum in units of 2**-36;
               each product is cut to the units of its sum, by [ ]
    logarithm = e + LOGARITHM[row] + 3/2 * r + [q * r], in units of 2**-47, or of 2**-60 where e + LOGARITHM[row] is 0
    product  = [+-s * logarithm / 2**16], exact until then, and [ ] of b * log2(a) from it in units of 2**-32
    integer, row, g = the parts of the product: above the point, the next 6 bits, the other 26
    power    = EXPONENTIAL[row] * (1 + g * polynomial(g)), every product cut to 2**-32, by [ ]

The result is power * 2**integer, rounded to FP32 once.
"""

from functools import cache

import numpy as np
from numba import njit

from neuroncore_rtl.spec import power as constants
from neuroncore_rtl.spec.formats import FP32

__all__ = ["power_fp32"]

_NUMERATOR, _LEADING_SHIFT, _REST_BITS = constants.LEADING
_ARGUMENT, _COEFFICIENT = constants.ARGUMENT_BITS, constants.COEFFICIENT_BITS
_IN_ROW = _ARGUMENT - constants.ROW_BITS
_FAR = constants.LOGARITHM_BITS
_NEAR = _FAR + constants.NEAR_SHIFT
_CUT = 16
_HALF = 28
_MANTISSA, _BIAS, _INFINITY = FP32.mantissa_bits, FP32.bias, FP32.infinity


def power_fp32(a, b) -> np.ndarray:
    """Return a ** b, NaN canonical; float32 in and out, broadcast.

    The special cases of IEEE 754-2019 pow, in order: x ** 0 and 1 ** y are 1, for a NaN too; a NaN gives NaN, and so
    does a negative finite base with an exponent that is no integer; (-1) ** +-Inf is 1. Else a base of size 0 or Inf,
    or an infinite exponent, gives 0 or Inf, whichever way it goes. An odd exponent keeps the sign of the base.
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
    """Return size ** b for one-dimensional arrays of positive bases and finite exponents."""
    out = np.empty(len(size), np.uint32)
    tables = (np.array(table) for table in (constants.RECIPROCAL, constants.LOGARITHM, constants.EXPONENTIAL))
    _compiled()(size.view(np.uint32), b.view(np.uint32), *tables, out)
    return out.view(np.float32)


@cache
def _compiled():
    """Return the compiled kernel powers(size, b, reciprocal, logarithm, exponential, out) over bit patterns."""
    l0, l1, l2, l3, l4 = constants.LOG_COEFFICIENTS
    e0, e1, e2 = constants.EXP_COEFFICIENTS
    row_mask = (1 << constants.ROW_BITS) - 1

    @njit
    def product_of(size, b, reciprocal, logarithm):
        """Return b * log2(size) in units of 2**-32, or anything beyond 2**40 for what exceeds the range of FP32."""
        significand, exponent = size & ((1 << _MANTISSA) - 1), size >> _MANTISSA
        if exponent == 0:
            exponent = 1
            while significand >> _MANTISSA == 0:
                significand, exponent = significand << 1, exponent - 1
        significand |= 1 << _MANTISSA
        row = (significand >> (_MANTISSA - constants.ROW_BITS)) & row_mask

        r = significand * reciprocal[row] - (1 << _ARGUMENT)
        q = l3 + (l4 * r >> _ARGUMENT)
        q = l2 + (q * r >> _ARGUMENT)
        q = l1 + (q * r >> _ARGUMENT)
        q = l0 + (q * r >> (_ARGUMENT + _COEFFICIENT - _REST_BITS))
        integer = ((exponent - _BIAS) << _FAR) + logarithm[row]
        bits = _NEAR if integer == 0 else _FAR
        log = integer + (_NUMERATOR * r << (bits - _ARGUMENT - _LEADING_SHIFT))
        log += q * r >> (_ARGUMENT + _REST_BITS - bits)

        field = (b >> _MANTISSA) & 0xFF
        factor = (b & ((1 << _MANTISSA) - 1)) | (np.int64(field != 0) << _MANTISSA)
        if b >> 31:
            factor = -factor
        low = log & ((1 << _HALF) - 1)
        product = (factor * (log >> _HALF) << (_HALF - _CUT)) + (factor * low >> _CUT)
        shift = bits + _MANTISSA - _CUT - _ARGUMENT - (field - _BIAS)
        if shift < 4:  # a base closest to 1 exceeds the range of FP32 already
            return np.int64(1) << 62
        return product >> min(shift, 63)

    @njit
    def exponential_of(product, grows, exponential):
        """Return the bits of FP32(2 ** product)."""
        integer = product >> _ARGUMENT
        if integer > 127 or integer < -150:
            return _INFINITY if grows else 0
        g = product & ((1 << _IN_ROW) - 1)
        p = e1 + (e2 * g >> _COEFFICIENT)
        p = e0 + (p * g >> _COEFFICIENT)
        p = p * g >> _COEFFICIENT
        word = exponential[(product >> _IN_ROW) & row_mask]
        word += word * p >> _COEFFICIENT
        # In units of the last place, which is that of the subnormals at least.
        place = max(integer, 1 - _BIAS) - _MANTISSA
        dropped = place - integer + _ARGUMENT
        kept, rest, half = word >> dropped, word & ((1 << dropped) - 1), 1 << (dropped - 1)
        kept += rest > half or (rest == half and kept & 1 == 1)
        return min(kept + ((place + _MANTISSA + _BIAS - 1) << _MANTISSA), _INFINITY)

    @njit
    def powers(size, b, reciprocal, logarithm, exponential, out):
        for i in range(len(out)):
            x, y = np.int64(size[i]), np.int64(b[i])
            grows = (x > _BIAS << _MANTISSA) ^ (y >> 31 == 1)
            out[i] = exponential_of(product_of(x, y, reciprocal, logarithm), grows, exponential)

    return powers
