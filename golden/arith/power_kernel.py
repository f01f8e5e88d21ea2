"""FP32 power of ordinary numbers, bit-exact: tables and polynomials in fixed point, compiled.

a = m * 2**e with m in [1, 2), and b = +-s * 2**f. All values are integers in the stated units, [x] is the floor of x,
and the constants are in `spec/power.py`:

    row      = the six leading fraction bits of m
    r        = m * RECIPROCAL[row] - 1, exactly
    q        = log2(1 + r) / r - 3/2, by Horner's rule in units of 2**-32, the last sum in units of 2**-36;
               each product is floored to the units of its sum
    logarithm = e + LOGARITHM[row] + 3/2 * r + [q * r], in units of 2**-47, or of 2**-60 if e + LOGARITHM[row] is 0
    product  = [+-s * logarithm / 2**16], exact until then; from it [b * log2(a)] in units of 2**-32
    integer, row, g = bits of the product: above the binary point, the next 6, the last 26
    power    = EXPONENTIAL[row] * (1 + g * polynomial(g)), every product floored to units of 2**-32

The result is power * 2**integer, rounded to FP32 once.
"""

import numpy as np
from numba import carray, njit  # pyright: ignore[reportPrivateImportUsage] - numba has no types.
from numba.types import CPointer, int64, uint32, void  # pyright: ignore[reportAttributeAccessIssue] - nor these.

from neuroncore_rtl.golden.arith.numba_cache import OPTIONS
from neuroncore_rtl.spec import power as constants
from neuroncore_rtl.spec.formats import FP32

__all__ = ["powers"]

_NUMERATOR, _LEADING_SHIFT, _REST_BITS = constants.LEADING
_ARGUMENT, _COEFFICIENT = constants.ARGUMENT_BITS, constants.COEFFICIENT_BITS
_IN_ROW = _ARGUMENT - constants.POWER_ROW_BITS
_FAR = constants.LOGARITHM_BITS
_NEAR = _FAR + constants.NEAR_SHIFT
_CUT = 16
_HALF = 28
_MANTISSA, _BIAS, _INFINITY = FP32.mantissa_bits, FP32.bias, FP32.infinity

_L0, _L1, _L2, _L3, _L4 = constants.LOG_COEFFICIENTS
_E0, _E1, _E2 = constants.EXP_COEFFICIENTS
_ROW_MASK = (1 << constants.POWER_ROW_BITS) - 1


@njit
def _product_of(size, b, reciprocal, logarithm):
    """Return b * log2(size) in units of 2**-32, or a value beyond 2**40 if the result exceeds the range of FP32."""
    significand, exponent = size & ((1 << _MANTISSA) - 1), size >> _MANTISSA
    if exponent == 0:
        exponent = 1
        while significand >> _MANTISSA == 0:
            significand, exponent = significand << 1, exponent - 1
    significand |= 1 << _MANTISSA
    row = (significand >> (_MANTISSA - constants.POWER_ROW_BITS)) & _ROW_MASK

    r = significand * reciprocal[row] - (1 << _ARGUMENT)
    q = _L3 + (_L4 * r >> _ARGUMENT)
    q = _L2 + (q * r >> _ARGUMENT)
    q = _L1 + (q * r >> _ARGUMENT)
    q = _L0 + (q * r >> (_ARGUMENT + _COEFFICIENT - _REST_BITS))
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
    if shift < 4:  # the result exceeds the range of FP32 even for the base closest to 1
        return np.int64(1) << 62
    return product >> min(shift, 63)


@njit
def _exponential_of(product, grows, exponential):
    """Return the FP32 bits of 2 ** p, `product` being p in units of 2**-32.

    Out of the range of FP32 the result is infinity if `grows`, else 0.
    """
    integer = product >> _ARGUMENT
    if integer > 127 or integer < -150:
        return _INFINITY if grows else 0
    g = product & ((1 << _IN_ROW) - 1)
    p = _E1 + (_E2 * g >> _COEFFICIENT)
    p = _E0 + (p * g >> _COEFFICIENT)
    p = p * g >> _COEFFICIENT
    word = exponential[(product >> _IN_ROW) & _ROW_MASK]
    word += word * p >> _COEFFICIENT
    # Round in units of the last place; subnormals have the last place of the smallest normal number.
    place = max(integer, 1 - _BIAS) - _MANTISSA
    dropped = place - integer + _ARGUMENT
    kept, rest, half = word >> dropped, word & ((1 << dropped) - 1), 1 << (dropped - 1)
    kept += rest > half or (rest == half and kept & 1 == 1)
    return min(kept + ((place + _MANTISSA + _BIAS - 1) << _MANTISSA), _INFINITY)


@njit(void(*[CPointer(uint32)] * 2, *[CPointer(int64)] * 3, CPointer(uint32), int64), **OPTIONS)
def powers(size, b, reciprocal, logarithm, exponential, out, count):
    """Write out[i] = size[i] ** b[i] for `count` FP32 bit patterns: positive finite bases and finite exponents."""
    size, b, out = carray(size, count), carray(b, count), carray(out, count)
    rows = 1 << constants.POWER_ROW_BITS
    reciprocal, logarithm, exponential = carray(reciprocal, rows), carray(logarithm, rows), carray(exponential, rows)
    for i in range(count):
        x, y = np.int64(size[i]), np.int64(b[i])
        grows = (x > _BIAS << _MANTISSA) ^ (y >> 31 == 1)
        out[i] = _exponential_of(_product_of(x, y, reciprocal, logarithm), grows, exponential)
