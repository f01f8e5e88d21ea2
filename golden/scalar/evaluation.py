"""Evaluation loop of the activation functions: integer arithmetic and one rounding, bit-exact.

    y = round(P * M), round(P * M + e * ln2) or round(2**(P * M))

P is a polynomial of the segment that z's sign and exponent select. M is 1, |z|, the fraction of a logarithm, or the
position within a quadrant. The numbers in docstrings and comments are those of the steps in docs/activation.md.
"""

import numpy as np
from numba import carray, njit  # pyright: ignore[reportPrivateImportUsage] - numba has no types.
from numba.types import CPointer, int64, uint32, uint64, void  # pyright: ignore[reportAttributeAccessIssue] - nor these.

from neuroncore_rtl.golden.arith.numba_cache import OPTIONS
from neuroncore_rtl.spec.functions.layout import (
    BINADES_BITS,
    COEFFICIENT_GUARD,
    COORDINATE_BITS,
    EXP2_INDEX_BITS,
    FACTOR_BITS,
    HIGH_EXPONENT,
    LN2,
    LOCAL_BITS,
    LOW_EXPONENT,
    POINT,
    REDUCED_BITS,
    ROW_BITS,
    SUM_CUT,
    SUM_POINT,
    Coordinate,
    Factor,
    Scale,
    Source,
)

__all__ = ["evaluate"]

_BASE, _BITS, _COORDINATE, _SOURCE, _FACTOR, _SCALE, _NEGATE, _EXP2, _INVALID = range(9)
_SIN, _COS, _OUTER = int(Coordinate.SIN), int(Coordinate.COS), int(Coordinate.OUTER)
_FROM_Z, _FROM_ALPHA = int(Source.Z), int(Source.ALPHA)
_TIMES_Z, _LOG, _REDUCED = int(Factor.Z), int(Factor.LOG), int(Factor.REDUCED)
_RECIPROCAL, _ROOT, _INVERSE_ROOT = int(Scale.RECIPROCAL), int(Scale.ROOT), int(Scale.INVERSE_ROOT)

_NAN = 0x7FC00000
_INF = 0x7F800000
_SIGNIFICAND = (1 << 23) - 1
_LOCAL = (1 << LOCAL_BITS) - 1
_UNITY = 1 << 23
_U_BITS = EXP2_INDEX_BITS + LOCAL_BITS
_LAST_BINADE = (1 << BINADES_BITS) - 1
_BINADE_BITS = COORDINATE_BITS - BINADES_BITS
_GUARDED = LOCAL_BITS + COEFFICIENT_GUARD
_REDUCED_MASK = (1 << REDUCED_BITS) - 1


@njit(inline="always")
def _bit_length(value):
    n = 0
    for step in (32, 16, 8, 4, 2, 1):
        if value >> step:
            value >>= step
            n += step
    return n + 1


@njit(inline="always")
def _decode(word):
    """Return the 24-bit significand, with the top bit set, and the exponent of a finite nonzero FP32 word."""
    significand, exponent = word & _SIGNIFICAND, (word >> 23 & 0xFF) - 127
    if exponent > -127:
        return significand | _UNITY, exponent
    shift = 24 - _bit_length(significand)
    return significand << shift, -126 - shift


@njit(inline="always")
def _round(magnitude, exponent, sign):
    if magnitude == 0:
        return sign << 31
    length = _bit_length(magnitude)
    field = max(length + exponent + 126, 0)
    if field > 254:
        return sign << 31 | _INF
    # Position of the last place: 24 bits, fewer in a subnormal.
    cut = max(length - 24, -149 - exponent)
    if cut > 62:
        return sign << 31
    if cut <= 0:
        kept, up = magnitude << -cut, 0
    else:
        kept = magnitude >> cut
        rest, half = magnitude & (1 << cut) - 1, 1 << cut - 1
        up = 1 if rest > half or (rest == half and kept & 1) else 0
    # The hidden bit of a normal number adds one to the exponent field.
    word = (max(field - 1, 0) << 23) + kept + up
    return sign << 31 | min(word, _INF)


@njit(inline="always")
def _coordinate(c, m, e, windows):
    """Step 3: return the 30-bit coordinate, the position within a quadrant, and whether the quadrant negates."""
    coordinate = c[_COORDINATE]
    r = negates = np.int64(0)
    if coordinate >= _SIN:
        high, low, significand = windows[e, 0], windows[e, 1], np.uint64(m)
        position = (significand * high << np.uint64(24)) + (significand * low >> np.uint64(16))
        quadrant = np.int64(position >> np.uint64(REDUCED_BITS)) + (coordinate == _COS)
        r = np.int64(position & np.uint64(_REDUCED_MASK))
        if quadrant & 1:
            r ^= _REDUCED_MASK
        negates = quadrant >> 1 & 1
        x = r >> REDUCED_BITS - COORDINATE_BITS
    elif coordinate == _OUTER and e <= LOW_EXPONENT:
        x = m << 6 >> min(LOW_EXPONENT - e, 31)
    elif coordinate == _OUTER:
        binade = e - HIGH_EXPONENT
        if binade > _LAST_BINADE:
            x = (1 << COORDINATE_BITS) - 1
        else:
            x = binade << _BINADE_BITS | (m & _SIGNIFICAND) << _BINADE_BITS - 23
    else:
        x = (m & _SIGNIFICAND) << 7
    return x, r, negates


@njit(inline="always")
def _polynomial(c, x, segments):
    """Steps 4 and 5: return the value and the exponent of the polynomial of the segment that x selects."""
    bits = c[_BITS]
    s = segments[c[_BASE] + (x >> COORDINATE_BITS - bits)]
    t = x >> COORDINATE_BITS - LOCAL_BITS - bits & _LOCAL
    q = s[2] + (t * s[3] >> LOCAL_BITS)
    q = s[1] + (t * q >> LOCAL_BITS)
    return s[0] + (t * q >> _GUARDED), s[4]


@njit(inline="always")
def _factor(factor, m, e, r):
    """Step 6: return the factor, its exponent, the addend of a logarithm, and whether the logarithm is negated."""
    addend = negates = np.int64(0)
    if factor == _TIMES_Z:
        value, exponent = m, e
    elif factor == _LOG:
        exponent = np.int64(-1)
        if m < 3 << 22:
            value, addend = m - _UNITY << 1, e * LN2
        else:
            value, addend, negates = 2 * _UNITY - m, (e + 1) * LN2, np.int64(1)
    elif factor == _REDUCED:
        zeros = REDUCED_BITS - _bit_length(r) if r else 0
        value, exponent = r << zeros >> REDUCED_BITS - FACTOR_BITS, 23 - FACTOR_BITS - zeros
    else:
        value, exponent = np.int64(_UNITY), np.int64(0)
    return value, exponent, addend, negates


@njit(inline="always")
def _scale_exponent(scale, e):
    if scale == _RECIPROCAL:
        return -e
    if scale == _ROOT:
        return e >> 1
    if scale == _INVERSE_ROOT:
        return -(e >> 1)
    return np.int64(0)


@njit(inline="always")
def _power_of_two(total, exponent, sign, exp2):
    u = total >> min(SUM_POINT - _U_BITS - exponent, 63)
    s = exp2[u >> LOCAL_BITS & (1 << EXP2_INDEX_BITS) - 1]
    t = u & _LOCAL
    magnitude = s[0] + (t * (s[1] + (t * s[2] >> LOCAL_BITS)) >> _GUARDED)
    return _round(magnitude, (u >> _U_BITS) - POINT, sign)


_SIGNATURE = void(
    *[CPointer(uint32)] * 2, int64, CPointer(int64), int64, int64, *[CPointer(int64)] * 3, CPointer(uint64)
)  # fmt: skip


@njit(_SIGNATURE, **OPTIONS)
def evaluate(words, result, count, specials, alpha, parity, control, segments, exp2, windows):
    """Evaluate a function on the `count` FP32 patterns `words`.

    `specials` are the results at +0, -0, +Inf and -Inf, `alpha` is the parameter's word. With `parity` 1 the exponent's
    lowest bit selects the row of the control table. `windows` [128, 2] is the upper and lower part of 2 / pi for each
    exponent.
    """
    words, result = carray(words, count), carray(result, count)
    # carray uses only the length of a row here.
    control, segments, exp2 = carray(control, (1, _INVALID + 1)), carray(segments, (1, 5)), carray(exp2, (1, 3))
    windows = carray(windows, (128, 2))
    alpha_sign = alpha >> 31
    alpha_rest = alpha & 0x7FFFFFFF
    alpha_ordinary = 0 < alpha_rest < _INF
    if alpha_ordinary:
        alpha_significand, alpha_exponent = _decode(alpha)
    else:
        alpha_significand, alpha_exponent = 0, 0

    for i in range(count):
        # 10. Special cases.
        word = np.int64(words[i])
        negative, rest = word >> 31, word & 0x7FFFFFFF
        if rest > _INF:
            result[i] = _NAN
            continue
        if rest == 0 or rest == _INF:
            result[i] = specials[2 * (rest == _INF) + negative]
            continue

        # 1. Decode. 2. Control.
        m, e = _decode(word)
        row = e & 1 if parity else min(max(e, LOW_EXPONENT), HIGH_EXPONENT) - LOW_EXPONENT
        c = control[(negative << ROW_BITS) + row]
        if c[_INVALID]:
            result[i] = _NAN
            continue
        source, factor, sign = c[_SOURCE], c[_FACTOR], c[_NEGATE]
        if source == _FROM_ALPHA and not alpha_ordinary:
            result[i] = _NAN if alpha_rest > _INF else (alpha_sign ^ sign) << 31 | alpha_rest
            continue

        x, r, negates = _coordinate(c, m, e, windows)
        sign ^= negates
        if source == _FROM_Z:
            p, exponent = m << 10, e
        elif source == _FROM_ALPHA:
            p, exponent = (-alpha_significand if alpha_sign else alpha_significand) << 10, alpha_exponent
        else:
            p, exponent = _polynomial(c, x, segments)
        value, shift, addend, negates = _factor(factor, m, e, r)
        sign |= negates
        exponent += shift + _scale_exponent(c[_SCALE], e)

        # 7. Product and sum.
        total = p * value >> SUM_CUT
        if c[_EXP2]:
            result[i] = _power_of_two(total, exponent, sign, exp2)
        else:
            # 9. Round.
            total = addend - total if sign else addend + total
            if total:
                sign = np.int64(total < 0)
            result[i] = _round(abs(total), exponent - SUM_POINT, sign)
