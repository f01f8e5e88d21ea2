"""Operands worth trying on the ALU's arithmetic: pairs to multiply, triples to fuse, pairs for every operation.

Like `tb.stimulus.operands`, whose patterns these are made of: drawn from the caller's generator, and ignorant of the
answers.
"""

import numpy as np

from neuroncore_rtl.golden.arith import decode
from neuroncore_rtl.spec.formats import FP32
from neuroncore_rtl.tb.stimulus.operands import SIGNS, add_cases, mixed, random_fp32, special_fp32

__all__ = ["alu_cases", "fma_cases", "multiply_cases"]

_BORDERS = (-151, -150, -149, -148, -128, -127, -126, -125, -102, 0, 126, 127)
"""Exponents of a product at the ends of FP32's range and just beyond them."""


def multiply_cases(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return n pairs of FP32 patterns.

    Half of the products are aimed at an exponent between underflow and overflow, a border more often than not; factors
    are random, special, or of few bits, whose products tie.
    """
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

    The addend cancels the 48 bits of the product as far as 24 can, lies a few places above or below it, where it ties
    or nearly ties, or has nothing to do with it.
    """
    a, b = multiply_cases(rng, n)
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
        kinds = [
            random_fp32(rng, n),
            cancelling + steps,
            (np.ldexp(full, -23) * scaled).astype(np.float32).view(np.uint32),
            powers.view(np.uint32),
            rng.choice(special_fp32(), n),
            rng.choice(SIGNS, n),
        ]
    return a, b, mixed(rng, n, (15, 30, 25, 15, 10, 5), kinds)


def alu_cases(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return n pairs of words for either arithmetic: of products, of sums, equal, opposite, small integers, shifts."""
    products, sums = multiply_cases(rng, n), add_cases(rng, n)
    a = random_fp32(rng, n)
    small = rng.integers(-40, 41, (2, n)).astype(np.uint32)
    borders = rng.choice(np.array([0, 1, -1, 31, 32, 33, 1 << 31, (1 << 31) - 1, 1 << 16]), (2, n)).astype(np.uint32)
    pairs = [products, sums, (a, a), (a, a ^ np.uint32(1 << 31)), (a, -a), small, borders, (a, small[1])]
    return mixed(rng, n, (25, 25, 10, 10, 5, 10, 10, 5), pairs)
