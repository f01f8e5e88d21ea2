"""Reference of docs/activation.md, section by section, in unbounded integers and fractions."""

from fractions import Fraction

import numpy as np

from neuroncore_rtl.spec.formats import FP32
from neuroncore_rtl.spec.functions import Function, load_tables
from neuroncore_rtl.spec.functions.layout import CONTROL_FIELDS, LN2, Coordinate, Factor, Scale, Source, window
from tests.oracles.exact import round_exactly

__all__ = ["datapath"]


def datapath(function: Function, z: int, alpha: int) -> int:
    """Return the FP32 word of f(z), from the FP32 words of z and alpha (finite and nonzero)."""
    sz = z >> 31
    m, e = _decode(z)
    row = e & 1 if function.parity else min(max(e, -4), 11) + 4
    control = dict(zip(CONTROL_FIELDS, load_tables().control[(function.code << 1 | sz) << 4 | row], strict=True))
    if control["invalid"]:
        return 0x7FC00000
    x, r, q = _coordinate(control["coordinate"], m, e)
    p, xp = _polynomial(control, x, (m, e), alpha)

    upper_half = m >= 3 * 2**22
    s = control["negate"]
    match control["factor"]:
        case Factor.ONE:
            factor, xm = 2**23, 0
        case Factor.Z:
            factor, xm = m, e
        case Factor.LOG:
            factor, xm, s = (2**24 - m, -1, 1) if upper_half else ((m - 2**23) << 1, -1, 0)
        case Factor.REDUCED:
            n = 62 - r.bit_length()
            factor, xm, s = (r << n) >> 34, -n - 5, s ^ q >> 1
    exponent = xp + xm
    match control["scale"]:
        case Scale.RECIPROCAL:
            exponent -= e
        case Scale.ROOT:
            exponent += e >> 1
        case Scale.INVERSE_ROOT:
            exponent -= e >> 1

    total = p * factor >> 3
    if control["exp2"]:
        u = total >> min(22 - exponent, 63)
        assert exponent <= 22 and -(2**40) <= u < 2**40
        c0, c1, c2 = load_tables().exp2[u >> 24 & 127]
        t = u & 2**24 - 1
        power = c0 + (t * (c1 + (t * c2 >> 24)) >> 26)
        assert 2**33 <= power < 2**34
        return _round(power, (u >> 31) - 33, s)
    total = -total if s else total
    if control["factor"] == Factor.LOG:
        total += (e + upper_half) * LN2
    assert abs(total) < 2**61
    return _round(abs(total), exponent - 53, int(total < 0 or total == 0 and s))


def _decode(word: int) -> tuple[int, int]:
    mantissa, field = word & 0x7FFFFF, word >> 23 & 255
    if field:
        return mantissa | 1 << 23, field - 127
    shift = 24 - mantissa.bit_length()
    return mantissa << shift, -126 - shift


def _coordinate(kind: int, m: int, e: int) -> tuple[int, int, int]:
    """Return x, the position within a quadrant, and the quadrant."""
    if kind == Coordinate.MANTISSA:
        return (m - 2**23) << 7, 0, 0
    if kind == Coordinate.OUTER and e <= -4:
        return (m << 6) >> min(-4 - e, 31), 0, 0
    if kind == Coordinate.OUTER:
        return (2**30 - 1 if e > 26 else (e - 11 << 23 | m - 2**23) << 3), 0, 0
    v = (m * window(e) % 2**80) >> 16
    q = ((v >> 62) + (kind == Coordinate.COS)) % 4
    r = v % 2**62 ^ (2**62 - 1 if q & 1 else 0)
    return r >> 32, r, q


def _polynomial(control: dict[str, int], x: int, z: tuple[int, int], alpha: int) -> tuple[int, int]:
    if control["source"] == Source.Z:
        return z[0] << 10, z[1]
    if control["source"] == Source.ALPHA:
        significand, exponent = _decode(alpha & 0x7FFFFFFF)
        return (-significand if alpha >> 31 else significand) << 10, exponent
    c0, c1, c2, c3, exponent = load_tables().segments[(control["base"] + (x >> 30 - control["bits"])) % 2**12]
    t = (x >> 6 - control["bits"]) % 2**24
    return c0 + (t * (c1 + (t * (c2 + (t * c3 >> 24)) >> 24)) >> 26), exponent


def _round(magnitude: int, exponent: int, sign: int) -> int:
    value = round_exactly(Fraction(magnitude) * Fraction(2) ** exponent, FP32)
    return sign << 31 | int(np.float32(value).view(np.uint32))
