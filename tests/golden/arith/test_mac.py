"""Multiply-accumulate: special values, the four passes of FP32, exact integers."""

import numpy as np
import pytest

from neuroncore_rtl.golden.arith import canonical, mac, widen
from neuroncore_rtl.spec.formats import BF16, FP32, INT8
from neuroncore_rtl.tb.check.oracles import softfloat
from neuroncore_rtl.tb.check.oracles.compare import assert_same_bits
from neuroncore_rtl.tb.stimulus.operands import special_codes, special_fp32

NAN, INF, ONE, NEGATIVE = 0x7FC00000, 0x7F800000, 0x3F800000, 0x80000000


def test_special_values_are_those_of_softfloat():
    codes = special_codes(BF16)
    x, w, acc = (words.ravel() for words in np.meshgrid(codes, codes, special_fp32()))
    theirs = softfloat.mul_add(widen(x, BF16), widen(w, BF16), acc)
    assert_same_bits(mac(x, w, acc, BF16), canonical(theirs), x, w, acc)


def halves(x: int, w: int, acc: int, *passes: str) -> int:
    for name in passes:
        acc = mac(np.uint32(x), np.uint32(w), np.uint32(acc), FP32, *name.split("*"))
    return int(acc)


@pytest.mark.parametrize(
    "x, w, expected",
    [
        (INF, ONE, INF), (INF | NEGATIVE, ONE + 1, INF | NEGATIVE), (INF, 0x00000001, INF),
        (0x80000FFF, INF, INF | NEGATIVE), (INF, INF, INF), (INF, 0, NAN), (0x7F800001, ONE, NAN),
        (ONE + 1, ONE, ONE + 1), (0x3FFFFFFF, 0xBFFFFFFF, 0xC07FFFFE), (0x00000FFF, ONE, 0x00000FFF),
    ],
    ids=lambda word: f"{word:x}",
)  # fmt: skip
def test_four_passes_of_fp32_special_values_travel_in_the_first(x, w, expected):
    assert halves(x, w, 0, "hi*hi", "hi*lo", "lo*hi", "lo*lo") == expected


def test_a_zero_of_a_low_half_and_no_other_leaves_the_accumulator_as_it_is():
    assert halves(ONE, ONE, NEGATIVE, "hi*lo") == halves(ONE, ONE, NEGATIVE, "lo*hi") == NEGATIVE
    assert halves(0, ONE + 1, NEGATIVE, "hi*lo") == halves(0, ONE, NEGATIVE, "hi*hi") == 0
    assert halves(ONE, ONE, 0xFF800001, "lo*lo") == NAN


def test_int8_products_are_exact():
    codes = np.arange(256, dtype=np.uint8)
    x, w = codes[:, np.newaxis], codes[np.newaxis, :]
    numbers = codes.view(np.int8).astype(np.int64)
    products = (numbers[:, np.newaxis] * numbers + 1_000_000).astype(np.float32)
    assert_same_bits(mac(x, w, np.float32(1_000_000).view(np.uint32), INT8), products.view(np.uint32))
