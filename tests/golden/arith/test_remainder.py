"""Remainders against numpy's float32 and rational numbers."""

import math
from fractions import Fraction

import numpy as np
import pytest

from neuroncore_rtl.golden import arith
from neuroncore_rtl.golden.arith import canonical
from neuroncore_rtl.spec.formats import FP32
from neuroncore_rtl.tb.check.oracles.compare import assert_same_bits
from neuroncore_rtl.tb.stimulus.alu_cases import remainder_cases, special_pairs
from tests.oracles.exact import round_exactly
from tests.oracles.words import on_words

SEED = 29
PAIRS = special_pairs()
FUNCTIONS = {"mod": (arith.mod_fp32, np.mod, math.floor), "fmod": (arith.fmod_fp32, np.fmod, math.trunc)}

INF, NAN = math.inf, math.nan


@pytest.mark.parametrize("name", FUNCTIONS)
def test_remainder_is_that_of_numpy(name, rng):
    function, theirs, _ = FUNCTIONS[name]
    for a, b in (remainder_cases(rng, 200_000), PAIRS):
        with np.errstate(invalid="ignore"):
            expected = theirs(a.view(np.float32), b.view(np.float32)).view(np.uint32)
        assert_same_bits(on_words(function, a, b), canonical(expected), a, b)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_remainder_is_the_exact_one_rounded_once(name, rng):
    function, _, whole = FUNCTIONS[name]
    a, b = (words.view(np.float32) for words in remainder_cases(rng, 3000))
    usual = np.isfinite(a) & np.isfinite(b) & (b != 0)
    actual, inexact = function(a[usual], b[usual]), 0
    for x, y, result in zip(a[usual].tolist(), b[usual].tolist(), actual.tolist(), strict=True):
        rest = Fraction(x) - Fraction(y) * whole(Fraction(x) / Fraction(y))
        assert result == (round_exactly(rest, FP32) if rest else 0), (x, y)
        inexact += rest != Fraction(result)
    assert (inexact > 50) == (name == "mod") and usual.sum() > 2000


@pytest.mark.parametrize(
    ("name", "a", "b", "result"),
    [
        ("mod", 5.0, 3.0, 2.0), ("mod", -5.0, 3.0, 1.0), ("mod", 5.0, -3.0, -1.0), ("mod", -5.0, -3.0, -2.0),
        ("fmod", 5.0, 3.0, 2.0), ("fmod", -5.0, 3.0, -2.0), ("fmod", 5.0, -3.0, 2.0), ("fmod", -5.0, -3.0, -2.0),
        ("mod", -6.0, 3.0, 0.0), ("mod", 6.0, -3.0, -0.0), ("fmod", -6.0, 3.0, -0.0), ("mod", -0.0, 3.0, 0.0),
        ("mod", -1e-30, 3.0, 3.0), ("mod", 1.0, INF, 1.0), ("mod", -1.0, INF, INF), ("fmod", -1.0, INF, -1.0),
        ("mod", INF, 3.0, NAN), ("fmod", 1.0, 0.0, NAN), ("mod", NAN, 1.0, NAN), ("fmod", FP32.max, 2.0**-149, 0.0),
    ],
)  # fmt: skip
def test_known_remainders(name, a, b, result):
    actual = FUNCTIONS[name][0](np.float32(a), np.float32(b))
    assert actual.view(np.uint32) == np.float32(result).view(np.uint32), (actual, result)
