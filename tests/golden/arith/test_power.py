"""Power against mpmath, exact results, and the special cases of IEEE 754."""

import mpmath
import numpy as np
import pytest

from neuroncore_rtl.golden.arith import canonical, power_fp32
from neuroncore_rtl.tb.check.oracles.compare import assert_same_bits
from neuroncore_rtl.tb.stimulus.alu_cases import power_cases, special_pairs
from tests.oracles.words import floats, words

SEED = 29
BOUND = 0.55  # ulp of the exact result; rounding alone is 0.5

INF, NAN = np.inf, np.nan
LARGEST = 0x7F7FFFFF
ONE = 0x3F800000


def powers(a, b):
    return power_fp32(floats(a), floats(b))


def errors(a, b):
    """Return the errors of |a| ** b in ulp, for finite nonzero bases and finite exponents.

    Infinity counts as 2**128, and is exact where the exact result is larger.
    """
    actual = powers(a & 0x7FFFFFFF, b).astype(np.float64)
    out = np.zeros(len(a))
    with mpmath.workprec(100):
        for i, (base, exponent) in enumerate(zip(a & 0x7FFFFFFF, b, strict=True)):
            base, exponent = float(base.view(np.float32)), float(exponent.view(np.float32))
            logarithm = exponent * mpmath.log(base, 2) if base != 1 else mpmath.mpf(0)
            if logarithm >= 128:
                out[i] = 0 if actual[i] == INF else INF
            elif logarithm < -200:
                out[i] = 0 if actual[i] == 0 else INF
            else:
                place = max(int(mpmath.floor(logarithm)), -126) - 23
                result = mpmath.mpf(2) ** 128 if actual[i] == INF else mpmath.mpf(actual[i])
                out[i] = mpmath.ldexp(result - mpmath.mpf(2) ** logarithm, -place)
    return np.abs(out)


def assert_within_bound(a, b, what):
    actual = errors(a, b)
    worst = int(np.argmax(actual))
    print(f"{what}: {len(a):,} powers, at most {actual[worst]:.4f} ulp, at {a[worst]:08x} ** {b[worst]:08x}")
    assert len(a) > 0 and actual[worst] < BOUND


def with_neighbours(words):
    return np.concatenate([np.asarray(words, np.int64) + step for step in (-1, 0, 1)]).astype(np.uint32)


def ordinary(a, b):
    size = a & 0x7FFFFFFF
    ordinary_pairs = (size != 0) & (size < 0x7F800000) & ((b & 0x7FFFFFFF) < 0x7F800000)
    return a[ordinary_pairs], b[ordinary_pairs]


def test_random_powers(rng):
    a, b = ordinary(*power_cases(rng, 100_000))
    assert_within_bound(a, b, "random")


@pytest.mark.parametrize("exponent", (0.5, -0.5, -1.0, 2.0, 1 / 3))
def test_common_exponents(exponent, rng):
    a = rng.integers(1, LARGEST + 1, 5_000, np.uint32)
    assert_within_bound(a, words(np.full(len(a), exponent)), f"exponent {exponent}")


def test_borders_of_the_logarithm_table(rng):
    borders = with_neighbours([ONE + (row << 17) for row in range(-64, 65)])
    a = np.repeat(borders[borders != ONE], 20)
    b = words(rng.uniform(-150, 128, len(a)) / np.log2(a.view(np.float32).astype(np.float64)))
    assert_within_bound(a, b, "logarithm table")


def test_borders_of_the_exponential_table():
    b = with_neighbours(words([octave + row / 64 for octave in (-149, -127, -1, 0, 127) for row in range(64)]))
    assert_within_bound(*ordinary(np.full(len(b), 0x40000000, np.uint32), b), "exponential table")


@pytest.mark.parametrize("border", (128, -126, -149, -150))
def test_borders_of_the_range(border, rng):
    """Results around the largest number, the smallest normal number, the smallest subnormal, and half of that."""
    a = rng.integers(1, LARGEST + 1, 1_000, np.uint32)
    b = words(border / np.log2(a.view(np.float32).astype(np.float64)))
    a, b = np.concatenate([a, a, a]), with_neighbours(b)
    assert_within_bound(a, b, f"2 ** {border}")


def test_bases_next_to_one_with_huge_exponents(rng):
    a = np.repeat((ONE + np.concatenate([np.arange(-300, 0), np.arange(1, 301)])).astype(np.uint32), 5)
    b = words(rng.uniform(-150, 128, len(a)) / np.log2(a.view(np.float32).astype(np.float64)))
    assert np.median(np.abs(b.view(np.float32))) > 1 << 16
    assert_within_bound(a, b, "next to one")


def test_largest_error_of_twenty_million():
    a, b = np.array([0x3F7FF399], np.uint32), np.array([0xC8E4E5B0], np.uint32)
    assert errors(a, b) == pytest.approx(0.5291, abs=1e-4)


def test_exponents_next_to_zero_give_one():
    tiny = np.array([1, 0x007FFFFF, 0x00800000, 0x10000000, 0x2F000000], np.uint32)
    exponents = np.concatenate([tiny, tiny | 1 << 31])
    for base in (1, 0x00800000, ONE - 1, ONE + 1, LARGEST):
        assert (powers(np.full(len(exponents), base), exponents) == 1).all()


def test_powers_that_fp32_represents_are_exact(rng):
    anything = rng.integers(1, LARGEST + 1, 20_000, np.uint32)
    assert_same_bits(powers(anything, np.full(len(anything), ONE)), anything.view(np.float32), anything)
    exponents = np.arange(-160, 140)
    with np.errstate(over="ignore"):
        expected = np.ldexp(1.0, exponents).astype(np.float32)
    assert_same_bits(power_fp32(2, exponents), expected, exponents)
    assert_same_bits(power_fp32(0.25, exponents / -2), expected, exponents)
    whole = np.arange(1, 4097)
    assert_same_bits(power_fp32(whole, 2), (whole**2).astype(np.float32), whole)
    assert_same_bits(power_fp32(whole**2, 0.5), whole.astype(np.float32), whole)
    for exponent, largest in ((3, 256), (4, 64), (5, 27), (6, 16), (7, 10), (10, 5), (15, 3)):
        whole = np.arange(-largest, largest + 1)
        assert_same_bits(power_fp32(whole, exponent), (whole**exponent).astype(np.float32), whole)


BASES = (NAN, INF, 0, 1, 2, 3, 0.5, 1.5, 1e-45, 1 - 2**-24, 1 + 2**-23, 3e38)
EXPONENTS = (NAN, INF, 0, 0.5, 1, 1.5, 2, 3, 4, 2**23 - 0.5, 2**24 - 1, 2**24, 3e38, 1e-45, *range(126, 130),
             *range(148, 152), 200)  # fmt: skip


def test_special_values_agree_with_the_c_library():
    """The C library's float64 power, rounded to FP32, may differ by one ulp where it lies between FP32 numbers."""
    some = np.meshgrid(*(np.float32([*values, *np.negative(values)]) for values in (BASES, EXPONENTS)))
    a, b = np.concatenate([special_pairs(), [words(side).ravel() for side in some]], axis=1)
    with np.errstate(all="ignore"):
        wide = np.power(floats(a).astype(np.float64), floats(b))
        theirs = wide.astype(np.float32)
    ours = powers(a, b)
    steps = np.abs(ours.view(np.int32).astype(np.int64) - theirs.view(np.int32))
    one_off = (steps == 1) & (wide != theirs) & np.isfinite(ours) & (ours != 0)
    assert one_off.mean() < 0.01
    assert_same_bits(words(ours), canonical(words(np.where(one_off, ours, theirs))), a, b)
