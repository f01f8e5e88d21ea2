"""Operands with one bit that decides the result, to reveal a broken wire; random operands seldom have such a bit."""

from functools import cache

import numpy as np

from neuroncore_rtl.golden.arith import decode
from neuroncore_rtl.spec.formats import FP32, Format

__all__ = ["bits_apart", "lone_bits", "lone_factors", "lone_fraction_bits", "lone_macs", "lone_powers", "lone_products"]

ONE = 0x3F80_0000
_NEAR = (ONE, ONE + 1, 0x00800000, 0x00FFFFFF, 0x01800001)  # a second operand differs from these in one bit

_LEFT = [(field, bit) for field in range(1, 28) for bit in {0, 22 - field, 23 - field, 24 - field} if 0 <= bit < 23]
"""Pairs of an exponent field and the one bit of a cancelled sum that remains; the sum is just normal, or subnormal."""

_FRACTION = FP32.infinity ^ 0x7FFFFFFF
_FARTHEST = 16  # most places by which an addend exceeds a product; for larger distances suitable factors are rare


def bits_apart() -> tuple[np.ndarray, np.ndarray]:
    """Return pairs of special FP32 words or ends of the integer range that differ in one bit, in both orders."""
    words = np.array([0, 1 << 31, FP32.infinity, 0xFF800000, ONE, 0xBF800000, 0x7FFFFFFF, 0xFFFFFFFF], np.uint32)
    words = np.repeat(words, 32)
    beside = words ^ np.tile(np.uint32(1) << np.arange(32, dtype=np.uint32), len(words) // 32)
    return np.concatenate([words, beside]), np.concatenate([beside, words])


def lone_fraction_bits(fmt: Format) -> np.ndarray:
    """Return uint32 codes of NaNs and subnormal numbers with a single fraction bit."""
    bits = [1 << bit for bit in range(fmt.padding_bits, fmt.padding_bits + fmt.mantissa_bits)]
    codes = [exponent | bit for exponent in (fmt.infinity, 0) for bit in bits]
    return np.array([sign | code for code in codes for sign in (0, 1 << fmt.bits - 1)], np.uint32)


def lone_bits() -> tuple[np.ndarray, np.ndarray]:
    """Return pairs of FP32 patterns in which one bit changes the sum, in both orders and with all signs.

    1. Sums that would be a tie without one bit of the smaller operand: for each shifted-out bit at each difference of
       the exponents.
    2. Numbers that cancel except for one bit, also where the exponent limits the normalisation.
    3. NaNs that differ from an infinity in one bit, paired with a number or an infinity.
    """
    pairs = [(large, small) for large in (ONE, ONE + 1) for small in _halves().tolist()]
    pairs += [(word, word ^ 1 << bit) for word in _NEAR for bit in range(31)]
    pairs += [(field << 23 | 1 << bit, field << 23) for field, bit in _LEFT]
    pairs += [(FP32.infinity | 1 << bit, other) for bit in range(23) for other in (ONE, FP32.infinity)]
    signed = [(a | s << 31, b | t << 31) for a, b in pairs for s in (0, 1) for t in (0, 1)]
    a, b = np.array(signed, np.uint32).T
    return np.concatenate([a, b]), np.concatenate([b, a])


@cache
def lone_factors() -> tuple[np.ndarray, np.ndarray]:
    """Return pairs of FP32 patterns with an exact product that would be a tie without one of its bits."""
    lone = ((dropped, 1 << dropped - 1 | 1 << bit) for dropped in (23, 24) for bit in range(dropped - 1))
    pairs = np.array([_factors(24, low, dropped, 24 + dropped) for dropped, low in lone]).T
    a, b = (ONE | pairs & _FRACTION).astype(np.uint32)
    return np.concatenate([a, b]), np.concatenate([b, a])


@cache
def lone_products() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return triples (a, b, c) of FP32 patterns in which one bit of the exact 48-bit product changes a * b + c.

    1. Sums of `lone_bits`, with one summand written as a product with a power of two.
    2. Products that would be a tie without one bit, without an addend or with a larger addend.
    3. Products that are a tie, with an addend far below their last place.
    4. NaNs that differ from an infinity in one bit, in each position, with numbers and infinities.
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
    return tuple(np.concatenate(column) for column in zip(*parts, _exact_products(), strict=True))


def _exact_products() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the triples of `lone_products` that need a factor other than a power of two."""
    triples = []
    # An addend that exceeds the product by this many places: so many more bits of the product are rounded off.
    for dropped in range(25, 25 + _FARTHEST):
        for bit in range(dropped - 1):
            factors = _factors(24, 1 << dropped - 1 | 1 << bit, dropped)
            triples += [(*factors, 104 + dropped << 23 | 3 << 21 | odd) for odd in (0, 1)]
            # A carry out of the sum shifts it, and the rounding position, by one place.
            triples += [(*factors, 103 + dropped << 23 | ones) for ones in (0x7FFFFC, 0x7FFFFE)]
    # A product that is a tie, for both possible positions of the last place, and an addend of each size below it.
    for dropped in (23, 24):
        factors = _factors(24, 1 << dropped - 1, dropped, 24 + dropped)
        triples += [(*factors, field << 23) for field in range(60, 128 - 48 + dropped)]
    a, b, c = np.array(triples).T
    products = [(ONE | a & _FRACTION, ONE | b & _FRACTION, c)]
    products.append((*lone_factors(), np.zeros_like(lone_factors()[0])))
    a, b, c = (np.concatenate(column).astype(np.uint32) for column in zip(*products, strict=True))
    b_sign, c_sign = np.array([[0, 0, 1, 1], [0, 1, 0, 1]], np.uint32)[:, :, np.newaxis] << 31
    return np.tile(a, 4), (b_sign | b).ravel(), (c_sign | c).ravel()


def lone_powers() -> tuple[np.ndarray, np.ndarray]:
    """Return pairs (base, exponent) of FP32 patterns in which one bit changes the power.

    1. Negative bases with exponents that would be integers without one fraction bit, in each position and of each size.
    2. Words that differ in one bit from a zero, a one or an infinity.
    """
    fields, bits = np.meshgrid(np.arange(126, 153), np.arange(23))
    digits = (fields << 23 | 1 << bits).ravel()
    special = np.array([0, ONE, FP32.infinity])
    beside = np.concatenate([special, np.bitwise_xor.outer(special, 1 << np.arange(31)).ravel()])
    powers = np.array([0, ONE, 0x40000000, 0x3FC00000, 0x40400000, FP32.infinity])
    pairs = [np.meshgrid([0xC0000000, 0xBFC00000], digits), np.meshgrid(beside, powers), np.meshgrid(powers, beside)]
    a, b = (np.concatenate([grid.ravel() for grid in side]) for side in zip(*pairs, strict=True))
    signs = np.array([[0, 0], [0, 1], [1, 0], [1, 1]]) << 31
    a, b = (np.bitwise_xor.outer(sign, words).ravel() for sign, words in zip(signs.T, (a, b), strict=True))
    return a.astype(np.uint32), b.astype(np.uint32)


@cache
def lone_macs(fmt: Format) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return cases (x, w, acc) of a float format in which one bit changes acc + x * w.

    1. NaNs that differ from an infinity in one bit, and subnormal numbers of one bit, each in every position.
    2. Sums that would be a tie without one bit of the accumulator, or of the product.

    For FP32 the upper halves of the significands are multiplied.
    """
    position = fmt.mantissa_bits + fmt.padding_bits
    one, lone, halves = fmt.bias << position, lone_fraction_bits(fmt), _halves()
    accs = np.array([0, 1 << 31, ONE, FP32.infinity], np.uint32)
    codes, beside = (grid.ravel() for grid in np.meshgrid(lone, accs))
    ones = np.full_like(codes, one)
    parts = [(codes, ones, beside), (ones, codes, beside), (one, one, lone_fraction_bits(FP32)), (one, one, halves)]
    # Products with these bits in one operand; the product's exponent is divided between both operands.
    cut = 23 - fmt.mantissa_bits
    fit = halves[halves & (1 << cut) - 1 == 0]
    fit = fit[127 - (fit >> 23) <= 2 * (fmt.bias - 1)]
    distance = 127 - (fit >> 23).astype(np.int64)
    fraction = (fit & 0x7FFFFF) >> cut << fmt.padding_bits
    x, w = fmt.bias - distance // 2 << position | fraction, fmt.bias - (distance - distance // 2) << position
    parts += [(x, w, acc) for acc in (ONE, ONE + 1)] + [(w, x, acc) for acc in (ONE, ONE + 1)]
    x, w, acc = _multiplied(min(fmt.precision, 12))
    x, w = (fmt.bias << position | bits << max(position - 11, 0) >> max(11 - position, 0) for bits in (x, w))
    parts.append((x, w, acc))
    columns = zip(*(np.broadcast_arrays(*map(np.atleast_1d, part)) for part in parts), strict=True)
    x, w, acc = (np.concatenate(column).astype(np.uint32) for column in columns)
    x_signs, acc_signs = np.array([0, 0, 1, 1], np.uint32) << fmt.bits - 1, np.array([0, 1, 0, 1], np.uint32) << 31
    x, acc = (np.bitwise_xor.outer(signs, words).ravel() for signs, words in ((x_signs, x), (acc_signs, acc)))
    return x, np.tile(w, len(x_signs)), acc


def _halves() -> np.ndarray:
    words = [127 - d << 23 | (1 << d - 1 | 1 << bit) & (1 << 23) - 1 for d in range(1, 25) for bit in range(d - 1)]
    return np.array(words, np.uint32)


def _multiplied(bits: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return fractions of two significands of `bits` bits, and FP32 accumulators.

    The sum would be a tie without one bit of the product.
    """
    found = []
    for dropped in range(2, 2 * bits + 1):
        for bit in range(dropped - 1):
            factors = _factors(bits, 1 << dropped - 1 | 1 << bit, dropped, 2 * bits)
            if factors is not None:
                # The accumulator's last place is twice the place of the product's half.
                field = 127 + dropped + 25 - 2 * bits
                found += [(*factors, field << 23 | 3 << 21 | odd) for odd in (0, 1)]
    x, w, acc = np.array(found).T
    x, w = ((significand << 12 - bits) & (1 << 11) - 1 for significand in (x, w))
    return x, w, acc


def _factors(bits: int, low: int, dropped: int, length: int = 0) -> tuple[int, int] | None:
    """Return two numbers of `bits` bits with a product that ends in the `dropped` bits `low`, or None.

    A nonzero length is the required number of bits of the product.
    """
    for many in (1 << 10, 1 << 14, 1 << 18):
        for zeros in range(min((low & -low).bit_length(), bits)):
            first = 1 << bits - 1 - zeros
            odd = np.arange(first | 1, min(2 * first, first + 2 * many), 2, dtype=np.uint64)
            inverse = odd.copy()
            for _ in range(5):  # each step doubles the number of correct bits
                inverse *= 2 - odd * inverse
            a, step = odd << np.uint64(zeros), 1 << dropped - zeros
            b = (np.uint64(low >> zeros) * inverse & np.uint64(step - 1)).astype(np.int64)
            b += np.maximum(-(-((1 << bits - 1) - b) // step), 0) * step
            fits = b >> bits == 0
            if length:
                fits &= a * b.astype(np.uint64) >> np.uint64(length - 1) == 1
            if fits.any():
                number = np.flatnonzero(fits)[0]
                return int(a[number]), int(b[number])
    return None
