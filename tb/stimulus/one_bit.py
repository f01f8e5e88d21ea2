"""Operands of which one bit decides: of a NaN, of a zero, of what is shifted out, or between two words.

Random operands seldom have one; a wire that is broken is often seen by no other. All of them are here, for the tests of
units and, mixed with others, for `make sim`.
"""

import numpy as np

from neuroncore_rtl.golden.arith import decode
from neuroncore_rtl.spec.formats import FP32, Format

__all__ = ["bits_apart", "lone_bits", "lone_factors", "lone_fraction_bits", "lone_macs", "lone_products"]

ONE = 0x3F80_0000

_NEAR = (ONE, ONE + 1, 0x00800000, 0x00FFFFFF, 0x01800001)
"""Numbers of which others are taken that differ in one bit."""

_LEFT = [(field, bit) for field in range(1, 28) for bit in {0, 22 - field, 23 - field, 24 - field} if 0 <= bit < 23]
"""Exponent fields near the least one, and bits that are left of such numbers: they just become normal, or do not."""


def bits_apart() -> tuple[np.ndarray, np.ndarray]:
    """Return pairs of words of 32 bits that differ in one bit, in either order: zeros, infinities and ones of FP32, and
    the ends of the integers, beside others."""
    words = np.array([0, 1 << 31, FP32.infinity, 0xFF800000, ONE, 0xBF800000, 0x7FFFFFFF, 0xFFFFFFFF], np.uint32)
    words = np.repeat(words, 32)
    beside = words ^ np.tile(np.uint32(1) << np.arange(32, dtype=np.uint32), len(words) // 32)
    return np.concatenate([words, beside]), np.concatenate([beside, words])


def lone_fraction_bits(fmt: Format) -> np.ndarray:
    """Return codes of a float format, uint32, that have one bit of the fraction: NaN, and subnormal numbers."""
    bits = [1 << bit for bit in range(fmt.padding_bits, fmt.padding_bits + fmt.mantissa_bits)]
    codes = [exponent | bit for exponent in (fmt.infinity, 0) for bit in bits]
    return np.array([sign | code for code in codes for sign in (0, 1 << fmt.bits - 1)], np.uint32)


def lone_bits() -> tuple[np.ndarray, np.ndarray]:
    """Return pairs of FP32 patterns of which one bit decides, in either order and with all signs.

    Sums halfway between two numbers but for one bit of the smaller operand: each of its bits that is shifted out, at
    each distance of the exponents. Numbers that cancel but for one bit, also where the exponent decides how far that
    is moved. And NaN that differ from an infinity in one bit, beside a number and an infinity.
    """
    pairs = [(large, small) for large in (ONE, ONE + 1) for small in _halves().tolist()]
    pairs += [(word, word ^ 1 << bit) for word in _NEAR for bit in range(31)]
    pairs += [(field << 23 | 1 << bit, field << 23) for field, bit in _LEFT]
    pairs += [(FP32.infinity | 1 << bit, other) for bit in range(23) for other in (ONE, FP32.infinity)]
    signed = [(a | s << 31, b | t << 31) for a, b in pairs for s in (0, 1) for t in (0, 1)]
    a, b = np.array(signed, np.uint32).T
    return np.concatenate([a, b]), np.concatenate([b, a])


def lone_factors() -> tuple[np.ndarray, np.ndarray]:
    """Return pairs of FP32 patterns whose exact product is halfway between two numbers but for one bit."""
    pairs = []
    for dropped in (23, 24):
        for bit in range(dropped - 1):
            low = 1 << dropped - 1 | 1 << bit
            for a in range((1 << 23) + 1, 1 << 24, 2):
                b = low * pow(a, -1, 1 << 24) % (1 << 24)
                product = a * b
                if b >> 23 and product.bit_length() == 24 + dropped and product % (2 << dropped) == low:
                    pairs.append((127 << 23 | a & 0x7FFFFF, 127 << 23 | b & 0x7FFFFF))
                    break
    a, b = np.array(pairs, np.uint32).T
    return np.concatenate([a, b]), np.concatenate([b, a])


def lone_products() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return triples (a, b, c) of FP32 patterns of which one bit decides: sums of `lone_bits`, one of them a product.

    The other factor is a power of two down to the least number, so that any bit of the exact product is the one; and
    each of the three is a NaN that differs from an infinity in one bit, beside numbers and infinities.
    """
    x, y = lone_bits()
    finite = (x & FP32.infinity) != FP32.infinity
    finite &= (y & FP32.infinity) != FP32.infinity
    with np.errstate(all="ignore"):
        value, c = decode(x, FP32)[finite], y[finite]
        most = np.minimum(149, FP32.bias + 1 - np.frexp(value)[1])
        places = most - np.arange(len(value)) % 26
        a, b = (
            np.ldexp(number, by).astype(np.float32).view(np.uint32) for number, by in ((value, places), (1.0, -places))
        )
    nan, other = x[~finite], y[~finite]
    swap = np.arange(len(a)) % 3 == 0
    one, zero = np.full_like(nan, ONE), np.zeros_like(nan)
    parts = [(np.where(swap, b, a), np.where(swap, a, b), c), (nan, other, one), (one, nan, other), (nan, zero, other)]
    return tuple(np.concatenate(column) for column in zip(*parts, strict=True))


def lone_macs(fmt: Format) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return cases (x, w, acc) of a float format of which one bit decides.

    NaN that differ from an infinity in one bit, and subnormal numbers of one bit, each in every place; and sums halfway
    between two numbers but for one bit of the accumulator, or of the product.
    """
    position = fmt.mantissa_bits + fmt.padding_bits
    one, lone, halves = fmt.bias << position, lone_fraction_bits(fmt), _halves()
    accs = np.array([0, 1 << 31, ONE, FP32.infinity], np.uint32)
    codes, beside = (grid.ravel() for grid in np.meshgrid(lone, accs))
    ones = np.full_like(codes, one)
    parts = [(codes, ones, beside), (ones, codes, beside), (one, one, lone_fraction_bits(FP32)), (one, one, halves)]
    # A product that has these bits, in the one operand; the exponent is that of both.
    cut = 23 - fmt.mantissa_bits
    fit = halves[halves & (1 << cut) - 1 == 0]
    fit = fit[127 - (fit >> 23) <= 2 * (fmt.bias - 1)]
    distance = 127 - (fit >> 23).astype(np.int64)
    fraction = (fit & 0x7FFFFF) >> cut << fmt.padding_bits
    x, w = fmt.bias - distance // 2 << position | fraction, fmt.bias - (distance - distance // 2) << position
    parts += [(x, w, acc) for acc in (ONE, ONE + 1)] + [(w, x, acc) for acc in (ONE, ONE + 1)]
    columns = zip(*(np.broadcast_arrays(*map(np.atleast_1d, part)) for part in parts), strict=True)
    x, w, acc = (np.concatenate(column).astype(np.uint32) for column in columns)
    x_signs, acc_signs = np.array([0, 0, 1, 1], np.uint32) << fmt.bits - 1, np.array([0, 1, 0, 1], np.uint32) << 31
    x, acc = (np.bitwise_xor.outer(signs, words).ravel() for signs, words in ((x_signs, x), (acc_signs, acc)))
    return x, np.tile(w, len(x_signs)), acc


def _halves() -> np.ndarray:
    """Return FP32 patterns of which, added to 1, half a last place is shifted out, and one bit below that.

    Each bit that there is, at each distance of the exponents.
    """
    words = [127 - d << 23 | (1 << d - 1 | 1 << bit) & (1 << 23) - 1 for d in range(1, 25) for bit in range(d - 1)]
    return np.array(words, np.uint32)
