"""Pairs of FP32 operands worth trying on division and power."""

import numpy as np

from neuroncore_rtl.golden.arith import decode
from neuroncore_rtl.spec.formats import FP32
from neuroncore_rtl.tb.stimulus.operands import SIGNS, fp32_bits, mixed, random_fp32, special_fp32

__all__ = ["divide_cases", "power_cases", "special_pairs"]

_ONE = 0x3F80_0000
_BORDERS = np.array([2.0**-150, 1.5 * 2.0**-149, 2.0**-126 - 2.0**-150, 2.0**-126, FP32.max, 2.0**128 - 2.0**103])
"""Between zero and the smallest number, between subnormals, the smallest normal number, the largest; ties with them."""


def special_pairs() -> tuple[np.ndarray, np.ndarray]:
    """Return every pair of special FP32 patterns."""
    special = special_fp32()
    return np.repeat(special, len(special)), np.tile(special, len(special))


def divide_cases(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return n pairs of FP32 patterns (a, b).

    Anything by anything; quotients anywhere in the range of FP32, at its borders, and beyond them; exact quotients;
    ties between subnormals; quotients as near to a tie or to a representable number as a division gets.
    """
    a, b = random_fp32(rng, n), random_fp32(rng, n)
    significands = rng.integers(1 << 23, 1 << 24, (2, n))
    exponent = np.choose(rng.integers(0, 2, n), [rng.integers(-152, 130, n), rng.choice([-150, -127, -126, 127], n)])
    near = rng.integers(-40, 41, n)
    with np.errstate(all="ignore"):
        # The quotient's exponent is aimed at: half of it comes from either operand, so that neither leaves the range.
        dividend = np.ldexp(significands[0] * 1.0, exponent // 2 - 23)
        divisor = np.ldexp(significands[1] * 1.0, exponent // 2 - exponent - 23)
        # A product of two short significands is divided by one of them; a last place more or less is nearly a tie.
        short = rng.integers(1, 1 << 12, (2, n))
        exact = np.ldexp(short[0] * short[1] * 1.0, near), short[1] * 1.0
        small = rng.integers(1, 1 << 24, n) * 2.0**-149, np.ldexp(1.0, rng.integers(-24, 24, n))
        midpoint = fp32_bits(decode(b, FP32) * (significands[0] * 2 + 1) * 2.0**-24)
        border = rng.choice(_BORDERS, n)
        # Small quotients from large divisors, large ones from small ones.
        factor = np.ldexp(significands[1] * 1.0, np.where(border < 1, 1, -1) * rng.integers(0, 100, n) - 23)
        edge = fp32_bits(border * factor) + rng.choice([-1, 0, 1], n).astype(np.uint32), fp32_bits(factor)
    kinds = [
        (a, b),
        (fp32_bits(dividend) | rng.choice(SIGNS, n), fp32_bits(divisor)),
        tuple(map(fp32_bits, exact)),
        (fp32_bits(exact[0]) + rng.choice([-1, 1], n).astype(np.uint32), fp32_bits(exact[1])),
        tuple(map(fp32_bits, small)),
        (midpoint, b),
        edge,
    ]
    return mixed(rng, n, (20, 35, 10, 10, 10, 10, 5), kinds)


def power_cases(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return n pairs of FP32 patterns (base, exponent).

    Anything to any power; results anywhere in the range of FP32, at its borders, and beyond them, from bases of every
    size, those next to 1 included; small integers and halves as exponents, with bases of both signs; results that are
    exact.
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
        (a, b),
        (base, aimed),
        (anywhere | signs, few),
        (close | signs, few),
        (integers[0] | signs, integers[1]),
        powers_of_two,
        (a, fp32_bits(rng.choice([-0.5, 0.5, -1.0, 1.0, 2.0], n))),
    ]
    return mixed(rng, n, (15, 50, 8, 7, 5, 5, 10), kinds)
