"""Random operands in which special values, ties, cancellations and borders are frequent."""

from collections.abc import Sequence

import numpy as np

from neuroncore_rtl.golden.arith import decode, operand, round_fp32, storage_dtype
from neuroncore_rtl.spec.formats import FP32, Format
from neuroncore_rtl.tb.stimulus.one_bit import lone_fraction_bits, lone_macs

__all__ = [
    "add_cases", "corners", "fp32_bits", "mac_cases", "mixed", "mixed_codes", "ordinary_codes", "partners",
    "random_codes", "random_fp32", "round_cases", "special_codes", "special_fp32",
]  # fmt: skip

SIGNS = np.array([0, 1 << 31], np.uint32)
CORNERS = 0.1
SPECIAL_WORDS = (0, 1, (1 << 31) - 1, 1 << 31, (1 << 32) - 1)


def corners(fmt: Format) -> np.ndarray:
    """Return special codes, codes of one fraction bit, and TF32 codes with nonzero padding."""
    special = special_fp32() if fmt == FP32 else special_codes(fmt).astype(np.uint32)
    if not fmt.is_float:
        return special
    padding = [1 << bit for bit in range(fmt.padding_bits)]
    words = [one | bit for one in (0, fmt.infinity >> 1, fmt.infinity) for bit in (*padding, sum(padding))]
    signed = [sign | word for word in words if fmt.padding_bits for sign in (0, 1 << fmt.bits - 1)]
    return np.concatenate([special, lone_fraction_bits(fmt), np.array(signed, np.uint32)])


def special_fp32() -> np.ndarray:
    """Return FP32 patterns of both signs: zeros, subnormal borders, one and its neighbours, maximum, Inf, NaNs."""
    magnitudes = [
        0x00000000, 0x00000001, 0x00000002, 0x00000003, 0x00000FFF, 0x00001000, 0x00400000, 0x007FFFFE, 0x007FFFFF,
        0x00800000, 0x00800001, 0x00FFFFFF, 0x01000000, 0x33800000, 0x34000000, 0x3EFFFFFF, 0x3F000000, 0x3F7FFFFF,
        0x3F800000, 0x3F800001, 0x3F800FFF, 0x3F801000, 0x3FC00000, 0x3FFFFFFF, 0x40000000, 0x40200000, 0x4B000000,
        0x4B7FFFFF, 0x4EFFFFFF, 0x4F000000, 0x7EFFFFFF, 0x7F000000, 0x7F7FFFFE, 0x7F7FFFFF, 0x7F800000, 0x7F800001,
        0x7F800FFF, 0x7F801000, 0x7FBFFFFF, 0x7FC00000, 0x7FC00001, 0x7FFFFFFF,
    ]  # fmt: skip
    return (np.array(magnitudes, np.uint32) | SIGNS[:, np.newaxis]).ravel()


def special_codes(fmt: Format) -> np.ndarray:
    """Return special codes of `fmt` of both signs, and every border of the range."""
    if not fmt.is_float:
        values = np.array([0, 1, -1, 2, fmt.max, fmt.min, fmt.min + 1, fmt.max // 2])
        return (values & ((1 << fmt.bits) - 1)).astype(storage_dtype(fmt))
    last = 1 << fmt.padding_bits
    normal = last << fmt.mantissa_bits
    one = fmt.bias * normal
    magnitudes = [
        0, last, 2 * last, normal - last, normal, normal + last, one - last, one, one + last, fmt.infinity - last,
        fmt.infinity, fmt.infinity + last, fmt.nan, fmt.infinity + normal - last,
    ]  # fmt: skip
    return np.array([sign << (fmt.bits - 1) | magnitude for sign in (0, 1) for magnitude in magnitudes]).astype(
        storage_dtype(fmt)
    )


def random_fp32(rng: np.random.Generator, n: int) -> np.ndarray:
    """Return n FP32 patterns: uniform, special, near one, near either end of the range, or of few bits."""
    uniform = rng.integers(0, 1 << 32, n, np.uint32)
    few_bits = uniform & (np.uint32(0xFFFFFFFF) << rng.integers(8, 24, n, np.uint32))
    kinds = [
        uniform, rng.choice(special_fp32(), n),
        *(_with_exponent(uniform, rng.integers(low, end, n)) for low, end in ((115, 140), (0, 3), (252, 255))),
        few_bits,
    ]  # fmt: skip
    return mixed(rng, n, (30, 10, 30, 10, 5, 15), kinds)


def random_codes(rng: np.random.Generator, fmt: Format, n: int) -> np.ndarray:
    """Return n codes of `fmt`, a tenth of them special; TF32's padding bits are zero."""
    if fmt == FP32:
        return random_fp32(rng, n)
    uniform = rng.integers(0, 1 << fmt.bits, n, np.int64)
    if fmt.is_float:
        uniform &= -1 << fmt.padding_bits
    codes = np.where(rng.random(n) < 0.1, rng.choice(special_codes(fmt), n), uniform)
    return codes.astype(storage_dtype(fmt))


def ordinary_codes(rng: np.random.Generator, fmt: Format, n: int) -> np.ndarray:
    """Return n codes of `fmt` in its storage type: numbers near 1 of either sign, or any integers."""
    if not fmt.is_float:
        return rng.integers(0, 1 << fmt.bits, n, np.int64).astype(storage_dtype(fmt))
    values = rng.standard_normal(n).astype(np.float32).view(np.uint32)
    return round_fp32(values, fmt, "rne", None)


def partners(rng: np.random.Generator, fmt: Format, codes: np.ndarray) -> np.ndarray:
    """Return a partner of each code: equal, opposite, adjacent, zero or special; -1 for the smallest integer."""
    n = len(codes)
    first = codes.astype(np.int64)
    opposite = first ^ (1 << fmt.bits - 1) if fmt.is_float else -first
    step = 1 << fmt.padding_bits if fmt.is_float else 1
    zeros = rng.choice([0, 1 << fmt.bits - 1] if fmt.is_float else [0, -1], n)
    special = rng.choice(special_codes(fmt).astype(np.int64), n)
    kinds = [first, opposite, first + step * rng.choice([-1, 1], n), zeros, special]
    return (mixed(rng, n, (35, 20, 15, 15, 15), kinds) & (1 << fmt.bits) - 1).astype(storage_dtype(fmt))


def mac_cases(
    rng: np.random.Generator, fmt: Format, n: int, x_half: str | None = None, w_half: str | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return n cases (x, w, acc): codes of `fmt` twice, FP32 patterns.

    The products cover the FP32 range with its subnormal and overflow borders. The accumulator cancels the product,
    gives a sum that is a tie, is far larger or smaller, is at a border, or is unrelated; or one bit changes the result
    (`lone_macs`).
    """
    x, w = random_codes(rng, fmt, n), random_codes(rng, fmt, n)
    if fmt.is_float:
        aimed = _aimed_at(rng, x, w, fmt)
        w = np.where(rng.random(n) < 0.5, aimed, w)
    corner = corners(fmt)
    x, w = (np.where(rng.random(n) < CORNERS, rng.choice(corner, n), one).astype(one.dtype) for one in (x, w))
    with np.errstate(all="ignore"):
        product = operand(x, fmt, x_half).astype(np.float64) * operand(w, fmt, w_half)
    cases = x, w, _addends(rng, product)
    if not fmt.is_float:
        return cases
    lone, chosen = lone_macs(fmt), rng.random(n) < 0.04
    number = rng.integers(0, len(lone[0]), n)
    return tuple(np.where(chosen, side[number], own).astype(own.dtype) for side, own in zip(lone, cases, strict=True))


def add_cases(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return n pairs related like product and accumulator in `mac_cases`."""
    a = random_fp32(rng, n)
    return a, _addends(rng, decode(a, FP32))


def round_cases(rng: np.random.Generator, fmt: Format, mode: str, n: int) -> tuple[np.ndarray, np.ndarray | None]:
    """Return n FP32 patterns, many of them ties of `fmt` or its borders, and random words; None for mode "rne"."""
    with np.errstate(all="ignore"):
        representable = decode(random_codes(rng, fmt, n), fmt)
        half = np.ldexp(0.5, _last_place(representable, fmt))
        tie = fp32_bits(representable + half * rng.choice([-1, 1], n))
        if fmt.is_float:
            low, high = fmt.min_exponent - fmt.mantissa_bits - 36, fmt.max_exponent + 2
        else:
            low, high = -36, fmt.bits + 1
        exponent = np.clip(rng.integers(low, high + 1, n), -149, 127)
        in_range = fp32_bits(np.ldexp(rng.integers(1 << 23, 1 << 24, n) * rng.choice([-1.0, 1.0], n), exponent - 23))
        border = fp32_bits(np.ldexp(rng.integers(1 << 23, 1 << 24, n) * 1.0, _border(rng, fmt, n) - 23))
    kinds = [
        random_fp32(rng, n), fp32_bits(representable), tie, tie + rng.choice([-1, 1], n).astype(np.uint32),
        in_range, border | rng.choice(SIGNS, n),
    ]  # fmt: skip
    value = mixed(rng, n, (15, 10, 15, 15, 30, 15), kinds)
    if mode == "rne":
        return value, None
    turn = (1 << 32) - np.floor(np.ldexp(_discarded(value, fmt), 32)).astype(np.int64)
    words = [rng.integers(0, 1 << 32, n), rng.choice(SPECIAL_WORDS, n)]
    words.append((turn + rng.choice([-1, 0], n)) & ((1 << 32) - 1))
    return value, mixed(rng, n, (40, 20, 40), words).astype(np.uint32)


def _addends(rng: np.random.Generator, value: np.ndarray) -> np.ndarray:
    """Return FP32 patterns that are hard to add to float64 values of at most 24 significand bits."""
    n = len(value)
    value = np.where(np.isfinite(value), value, 1.0)
    mantissa, exponent = np.frexp(value)
    significand = np.abs(np.ldexp(mantissa, 24)).astype(np.int64)
    with np.errstate(all="ignore"):
        lowest = np.ldexp((significand & -significand).astype(np.float64), exponent - 24)
        full = rng.integers(1 << 23, 1 << 24, n) * rng.choice([-1.0, 1.0], n)
        cancelling = fp32_bits(-value)
        noise = rng.integers(0, 1 << 24, n) >> rng.integers(0, 24, n)
        kinds = [
            random_fp32(rng, n),
            cancelling + rng.choice([-2, -1, 0, 0, 0, 1, 2], n).astype(np.uint32),
            cancelling ^ noise.astype(np.uint32),
            fp32_bits(full * 2 * lowest),  # the value's lowest bit is half a place of the sum: a tie
            fp32_bits(full * np.ldexp(1.0, exponent - 24 + rng.integers(-30, 31, n))),
            _with_exponent(fp32_bits(full), rng.integers(0, 3, n)),
            _with_exponent(fp32_bits(full), rng.integers(253, 255, n)),
            rng.choice(SIGNS, n),
        ]
    return mixed(rng, n, (20, 15, 10, 15, 25, 5, 5, 5), kinds)


def mixed(rng: np.random.Generator, n: int, weights: Sequence[int], kinds: Sequence) -> np.ndarray:
    """Return n elements, each from kinds[i] with the probability weights[i] / sum(weights)."""
    chosen = rng.choice(np.repeat(np.arange(len(weights)), weights), n)
    if isinstance(kinds[0], tuple):
        return tuple(np.choose(chosen, side) for side in zip(*kinds, strict=True))
    return np.choose(chosen, kinds)


def mixed_codes(rng: np.random.Generator, fmt: Format, n: int, shares: Sequence[float]) -> np.ndarray:
    """Return n codes of `fmt`; one of `shares` is the share of random codes."""
    wild, tame = random_codes(rng, fmt, n), ordinary_codes(rng, fmt, n)
    return np.where(rng.random(n) < rng.choice(shares), wild, tame).astype(storage_dtype(fmt))


def fp32_bits(value) -> np.ndarray:
    """Return the FP32 patterns of float64 values."""
    return np.asarray(value, np.float64).astype(np.float32).view(np.uint32)


def _with_exponent(bits, exponent, fmt: Format = FP32) -> np.ndarray:
    position = fmt.mantissa_bits + fmt.padding_bits
    field = ((1 << fmt.exponent_bits) - 1) << position
    return (bits.astype(np.int64) & ~field | (exponent.astype(np.int64) << position)).astype(bits.dtype)


def _aimed_at(rng, x, w, fmt: Format) -> np.ndarray:
    """Return w with an exponent that gives x * w a uniformly drawn FP32 exponent, within the range of `fmt`."""
    largest = (1 << fmt.exponent_bits) - 1
    x_exponent = (x.astype(np.int64) >> (fmt.mantissa_bits + fmt.padding_bits)) & largest
    anywhere, border = rng.integers(-155, 130, len(x)), rng.choice([-150, -127, -126, 126, 127], len(x))
    aim = np.where(rng.random(len(x)) < 0.5, anywhere, border)
    return _with_exponent(w, np.clip(aim + 2 * fmt.bias - x_exponent, 0, largest - 1), fmt)


def _border(rng, fmt: Format, n: int) -> np.ndarray:
    """Return exponents around the smallest subnormal, the smallest normal and the largest number of `fmt`."""
    ends = (fmt.min_exponent - fmt.mantissa_bits, fmt.min_exponent, fmt.max_exponent) if fmt.is_float else (0, fmt.bits)
    return np.clip(rng.choice(ends, n) + rng.integers(-2, 2, n), -149, 127)


def _last_place(value, fmt: Format) -> np.ndarray:
    if not fmt.is_float:
        return np.zeros(np.shape(value), np.int64)
    exponent = np.frexp(np.where(np.isfinite(value), value, 0))[1].astype(np.int64) - 1
    return np.maximum(exponent, fmt.min_exponent) - fmt.mantissa_bits


def _discarded(bits, fmt: Format) -> np.ndarray:
    """Return the bits that truncation to `fmt` discards, in units of the last place; 0 if not finite."""
    value = decode(bits, FP32)
    scaled = np.ldexp(np.abs(np.where(np.isfinite(value), value, 0)), -_last_place(value, fmt))
    return scaled - np.floor(scaled)
