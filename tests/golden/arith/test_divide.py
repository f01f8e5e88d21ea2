"""Division against Berkeley SoftFloat."""

import numpy as np

from neuroncore_rtl.golden.arith import canonical, divide_fp32
from neuroncore_rtl.tb.check.oracles import softfloat
from neuroncore_rtl.tb.check.oracles.compare import assert_same_bits
from neuroncore_rtl.tb.stimulus.pairs import divide_cases, special_pairs

SEED = 23


def quotients(a, b):
    return divide_fp32(a.view(np.float32), b.view(np.float32)).view(np.uint32)


def test_quotients_agree_with_softfloat():
    print(f"seed {SEED}")
    a, b = divide_cases(np.random.default_rng(SEED), 500_000)
    assert_same_bits(quotients(a, b), canonical(softfloat.divide(a, b)), a, b)


def test_special_values_agree_with_softfloat():
    a, b = special_pairs()
    assert_same_bits(quotients(a, b), canonical(softfloat.divide(a, b)), a, b)


def test_cases_reach_every_kind_of_quotient():
    """Else agreement would say little."""
    a, b = divide_cases(np.random.default_rng(SEED), 50_000)
    size = quotients(a, b) & 0x7FFFFFFF
    kinds = {
        "zero": size == 0,
        "subnormal": (size > 0) & (size < 0x00800000),
        "smallest normal": size == 0x00800000,
        "normal": (size > 0x00800000) & (size < 0x7F7FFFFF),
        "largest": size == 0x7F7FFFFF,
        "infinite": size == 0x7F800000,
        "NaN": size == 0x7FC00000,
    }
    assert {kind for kind, found in kinds.items() if found.any()} == set(kinds)


def test_shapes_broadcast():
    quotient = divide_fp32(np.ones((4, 1), np.float32), np.full(3, 2, np.float32))
    assert quotient.shape == (4, 3) and quotient.dtype == np.float32
    assert (quotient == 0.5).all()
    assert divide_fp32(1.0, 3.0).view(np.uint32) == 0x3EAAAAAB
