"""Random operands for the ALU: for multiplication, division, power, fused multiply-add, and for all operations."""

import numpy as np

from neuroncore_rtl.golden.arith import decode
from neuroncore_rtl.spec.formats import FP32, INT32
from neuroncore_rtl.tb.stimulus.one_bit import bits_apart, lone_bits
from neuroncore_rtl.tb.stimulus.operands import SIGNS, add_cases, fp32_bits, mixed, partners, random_fp32, special_fp32

__all__ = [
    "alu_cases", "divide_cases", "fma_cases", "multiply_cases", "power_cases", "remainder_cases", "special_pairs",
]  # fmt: skip

_BORDERS = (-151, -150, -149, -148, -128, -127, -126, -125, -102, 0, 126, 127)  # exponents at FP32's ends and beyond
_ONE = 0x3F80_0000
_QUOTIENTS = np.array([2.0**-150, 1.5 * 2.0**-149, 2.0**-126 - 2.0**-150, 2.0**-126, FP32.max, 2.0**128 - 2.0**103])
"""Quotients at the limits of FP32: the smallest and largest numbers, subnormals, and the ties next to these."""


def multiply_cases(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return n pairs of FP32 patterns. Factors are random, special, or have few bits, so that products tie."""
    a, b = random_fp32(rng, n), random_fp32(rng, n)
    special = rng.random(n) < 0.1
    a = np.where(special, rng.choice(special_fp32(), n), a)
    b = np.where(special, rng.choice(special_fp32(), n), b)
    aim = np.where(rng.random(n) < 0.5, rng.choice(_BORDERS, n), rng.integers(-155, 130, n))
    value = decode(a & 0x7FFFFFFF, FP32)
    exponent = np.frexp(np.where(np.isfinite(value), value, 1))[1] - 1
    field = np.clip(aim + FP32.bias - exponent, 0, 254).astype(np.uint32)
    aimed = (b & np.uint32(0x807FFFFF)) | field << np.uint32(23)
    b = np.where(~special & (rng.random(n) < 0.5), aimed, b)
    swap = rng.random(n) < 0.5
    return np.where(swap, b, a), np.where(swap, a, b)


def fma_cases(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return n triples (a, b, c) of FP32 patterns.

    The addend c is of one of three kinds. It cancels the 48-bit product a * b as far as 24 bits can; or it is a few
    binary places above or below the product, so that the sum is a tie or nearly a tie; or it is unrelated. Some
    products have a subnormal factor of any size, and therefore leading zeros.
    """
    a, b = multiply_cases(rng, n)
    small = rng.integers(1, 1 << 23, n) >> rng.integers(0, 23, n) | rng.choice(SIGNS, n)
    a = np.where(rng.random(n) < 0.15, small, a).astype(np.uint32)
    with np.errstate(all="ignore"):
        product = decode(a, FP32) * decode(b, FP32)
        product = np.where(np.isfinite(product), product, 1.0)
        near = product.astype(np.float32).view(np.uint32)
        cancelling = near ^ np.uint32(1 << 31)
        steps = rng.choice([-2, -1, 0, 0, 0, 1, 2], n).astype(np.uint32)
        scaled = np.ldexp(np.float64(1), np.frexp(product)[1] + rng.integers(-52, 53, n))
        full = rng.integers(1 << 23, 1 << 24, n) * rng.choice([-1.0, 1.0], n)
        few = np.ldexp(full, -23).round(3)
        powers = np.where(rng.random(n) < 0.5, few * scaled, np.copysign(scaled, full)).astype(np.float32)
        close = (
            (np.ldexp(full, -23 + np.frexp(product)[1] + rng.integers(-28, 4, n))).astype(np.float32).view(np.uint32)
        )
        distant = (np.ldexp(full, -23) * scaled).astype(np.float32).view(np.uint32)
        kinds = [
            random_fp32(rng, n), cancelling + steps, distant, close, powers.view(np.uint32),
            rng.choice(special_fp32(), n), rng.choice(SIGNS, n),
        ]  # fmt: skip
    return a, b, mixed(rng, n, (15, 25, 15, 15, 15, 10, 5), kinds)


def alu_cases(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return n pairs of words: operands of products, sums and shifts; related words, small integers, one-bit cases."""
    products, sums = multiply_cases(rng, n), add_cases(rng, n)
    a = random_fp32(rng, n)
    small = rng.integers(-40, 41, (2, n)).astype(np.uint32)
    borders = rng.choice(np.array([0, 1, -1, 31, 32, 33, 1 << 31, (1 << 31) - 1, 1 << 16]), (2, n)).astype(np.uint32)
    related = [(a, partners(rng, fmt, a)) for fmt in (FP32, INT32)]
    decided = [np.stack(cases)[:, rng.integers(0, len(cases[0]), n)] for cases in (bits_apart(), lone_bits())]
    pairs = [products, sums, *related, small, borders, (a, small[1]), *map(tuple, decided)]
    return mixed(rng, n, (25, 20, 20, 10, 10, 10, 5, 3, 2), pairs)


def special_pairs() -> tuple[np.ndarray, np.ndarray]:
    """Return every pair of special FP32 patterns."""
    special = special_fp32()
    return np.repeat(special, len(special)), np.tile(special, len(special))


def divide_cases(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return n pairs of FP32 patterns (a, b).

    Kinds: any pair; quotients within, at and beyond the range of FP32; exact quotients; ties between subnormals;
    quotients as close to a tie or to a representable number as a division can be.
    """
    a, b = random_fp32(rng, n), random_fp32(rng, n)
    significands = rng.integers(1 << 23, 1 << 24, (2, n))
    exponent = np.choose(rng.integers(0, 2, n), [rng.integers(-152, 130, n), rng.choice([-150, -127, -126, 127], n)])
    near = rng.integers(-40, 41, n)
    with np.errstate(all="ignore"):
        # Each operand contributes half of the quotient's exponent, so that both stay in range.
        dividend = np.ldexp(significands[0] * 1.0, exponent // 2 - 23)
        divisor = np.ldexp(significands[1] * 1.0, exponent // 2 - exponent - 23)
        # (short * short) / short is exact; one last place more or less is nearly a tie.
        short = rng.integers(1, 1 << 12, (2, n))
        exact = np.ldexp(short[0] * short[1] * 1.0, near), short[1] * 1.0
        small = rng.integers(1, 1 << 24, n) * 2.0**-149, np.ldexp(1.0, rng.integers(-24, 24, n))
        midpoint = fp32_bits(decode(b, FP32) * (significands[0] * 2 + 1) * 2.0**-24)
        border = rng.choice(_QUOTIENTS, n)
        # Small quotients have large divisors, large quotients small ones.
        factor = np.ldexp(significands[1] * 1.0, np.where(border < 1, 1, -1) * rng.integers(0, 100, n) - 23)
        edge = fp32_bits(border * factor) + rng.choice([-1, 0, 1], n).astype(np.uint32), fp32_bits(factor)
    kinds = [
        (a, b), (fp32_bits(dividend) | rng.choice(SIGNS, n), fp32_bits(divisor)), tuple(map(fp32_bits, exact)),
        (fp32_bits(exact[0]) + rng.choice([-1, 1], n).astype(np.uint32), fp32_bits(exact[1])),
        tuple(map(fp32_bits, small)), (midpoint, b), edge,
    ]  # fmt: skip
    return mixed(rng, n, (20, 35, 10, 10, 10, 10, 5), kinds)


def remainder_cases(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return n pairs of FP32 patterns (a, b).

    Kinds: any pair; quotients of up to 30 bits; multiples and their neighbours; subnormals; dividends below the
    divisor, where floored remainders are rounded.
    """
    a, b = random_fp32(rng, n), random_fp32(rng, n)
    significands = rng.integers(1 << 23, 1 << 24, (2, n)) * rng.choice([-1.0, 1.0], (2, n))
    places = rng.integers(-120, 70, n)
    near = np.ldexp(significands, [places + rng.integers(-2, 30, n), places])
    short = rng.integers(1, 1 << 12, (2, n)) * rng.choice([-1.0, 1.0], (2, n))
    multiples = fp32_bits(np.ldexp(short[0] * short[1], rng.integers(0, 60, n))), fp32_bits(short[1])
    beside = multiples[0] + rng.choice([-1, 1], n).astype(np.uint32), multiples[1]
    below = np.ldexp(significands, [places - rng.integers(0, 30, n), places])
    small = (rng.integers(1, 1 << 24, (2, n)) >> rng.integers(0, 24, (2, n))).astype(np.uint32) | rng.choice(
        SIGNS, (2, n)
    )
    kinds = [(a, b), tuple(map(fp32_bits, near)), multiples, beside, tuple(map(fp32_bits, below)), tuple(small), (a, a)]
    return mixed(rng, n, (20, 25, 10, 10, 20, 10, 5), kinds)


def power_cases(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return n pairs of FP32 patterns (base, exponent).

    Kinds: any pair; results within, at and beyond FP32's range, from bases of every size; small integers and halves as
    exponents, with bases of both signs; exact results.
    """
    a, b = random_fp32(rng, n), random_fp32(rng, n)
    anywhere = rng.integers(1, FP32.infinity, n, np.uint32)
    close = (_ONE + rng.integers(-(1 << 23), 1 << 23, n) // (1 << rng.integers(0, 24, n))).astype(np.uint32)
    base = np.where(rng.random(n) < 0.5, anywhere, np.where(close == _ONE, _ONE + 1, close))
    binade = np.where(rng.random(n) < 0.6, rng.uniform(-152, 130, n), rng.choice([-150.0, -149.0, -126.0, 128.0], n))
    with np.errstate(all="ignore"):
        logarithm = np.log2(decode(base, FP32))
        aimed = fp32_bits(binade / logarithm) + rng.integers(-2, 3, n).astype(np.uint32)
        few = fp32_bits(rng.integers(-24, 25, n) * 0.5)
        integers = fp32_bits(rng.integers(1, 20, n) * 1.0), fp32_bits(rng.integers(-8, 9, n) * 1.0)
        powers_of_two = fp32_bits(np.ldexp(1.0, rng.integers(-149, 128, n))), fp32_bits(rng.integers(-40, 41, n) * 0.25)
    signs = rng.choice(SIGNS, n)
    kinds = [
        (a, b), (base, aimed), (anywhere | signs, few), (close | signs, few), (integers[0] | signs, integers[1]),
        powers_of_two, (a, fp32_bits(rng.choice([-0.5, 0.5, -1.0, 1.0, 2.0], n))),
    ]  # fmt: skip
    return mixed(rng, n, (15, 50, 8, 7, 5, 5, 10), kinds)
