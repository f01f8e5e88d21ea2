"""The multiply-accumulate and the adder against Berkeley SoftFloat, and their special values by name."""

import numpy as np
import pytest

from neuroncore_rtl.golden.arith import add_fp32, fma_fp32, mac
from neuroncore_rtl.spec.formats import BF16, FP32, INT8
from neuroncore_rtl.tb.check.oracles.compare import assert_same_bits
from neuroncore_rtl.tb.stimulus.campaign import OPERATIONS

SEED = 14
NAN, INF, ONE, TWO = 0x7FC00000, 0x7F800000, 0x3F800000, 0x40000000
NEGATIVE = 0x80000000


@pytest.mark.parametrize("name", [name for name in OPERATIONS if name.startswith("mac")])
def test_mac_agrees_with_softfloat(name):
    cases, ours, theirs = OPERATIONS[name](np.random.default_rng(SEED), 40_000)
    assert_same_bits(ours, theirs, *cases)


def test_adder_agrees_with_softfloat():
    cases, ours, theirs = OPERATIONS["add fp32"](np.random.default_rng(SEED), 100_000)
    assert_same_bits(ours, theirs, *cases)


def test_one_rounding_not_two():
    """1 + 2**-23 + 2**-24 * (1 + 2**-7): a product rounded first, or a sum without its last bits, ends one lower."""
    acc, x, w = 0x3F800001, 0x3F81, 0x3380  # w is 2**-24
    assert mac(x, w, acc, BF16) == 0x3F800002
    assert mac(0x3F80, w, 0x3F800000, BF16) == 0x3F800000, "a tie goes to the even neighbour"
    assert mac(0x3F80, w, 0x3F800001, BF16) == 0x3F800002, "a tie goes to the even neighbour"


@pytest.mark.parametrize(
    "x, w, acc, expected",
    [
        (0x0000, 0x3F80, NEGATIVE, 0),
        (0x8000, 0x3F80, NEGATIVE, NEGATIVE),
        (0x8000, 0xBF80, NEGATIVE, 0),
        (0x3F80, 0xBF80, ONE, 0),
        (0x3F80, 0x3F80, ONE | NEGATIVE, 0),
        (0x7F80, 0x0000, 0, NAN),
        (0x8000, 0xFF80, ONE, NAN),
        (0x7F80, 0x3F80, INF | NEGATIVE, NAN),
        (0x7F80, 0xBF80, INF | NEGATIVE, INF | NEGATIVE),
        (0x3F80, 0x3F80, INF, INF),
        (0xFFFF, 0x3F80, 0, NAN),
        (0x3F80, 0x3F80, 0x7F800001, NAN),
        (0x7F7F, 0x7F7F, INF | NEGATIVE, INF | NEGATIVE),
        (0x7F7F, 0x7F7F, 0xFF7FFFFF, INF),
        (0x0001, 0x0001, 0, 0),
        (0x0001, 0x8001, 0, NEGATIVE),
        (0x0001, 0x8001, 1, 1),
    ],
    ids=lambda word: f"{word:x}",
)
def test_special_values_of_the_mac(x, w, acc, expected):
    assert int(mac(x, w, acc, BF16)) == expected


@pytest.mark.parametrize(
    "a, b, expected",
    [
        (0, NEGATIVE, 0),
        (NEGATIVE, NEGATIVE, NEGATIVE),
        (ONE, ONE | NEGATIVE, 0),
        (INF, INF | NEGATIVE, NAN),
        (INF, INF, INF),
        (0xFF800001, ONE, NAN),
        (0x7F7FFFFF, 0x7F7FFFFF, INF),
        (0x7F7FFFFF, 0x73000000, INF),
        (0x7F7FFFFF, 0x72FFFFFF, 0x7F7FFFFF),
        (0x00800000, 0x80000001, 0x007FFFFF),
        (0x007FFFFF, 0x00000001, 0x00800000),
    ],
    ids=lambda word: f"{word:x}",
)
def test_special_values_of_the_adder(a, b, expected):
    total = add_fp32(np.uint32(a).view(np.float32), np.uint32(b).view(np.float32))
    assert int(total.view(np.uint32)) == expected


def four_passes(x: int, w: int, acc: int = 0) -> int:
    for x_half, w_half in (("hi", "hi"), ("hi", "lo"), ("lo", "hi"), ("lo", "lo")):
        acc = mac(np.uint32(x), np.uint32(w), np.uint32(acc), FP32, x_half, w_half)
    return int(acc)


@pytest.mark.parametrize(
    "x, w, expected",
    [
        (INF, ONE, INF),
        (INF | NEGATIVE, ONE + 1, INF | NEGATIVE),
        (INF, 0x00000001, INF),
        (0x80000FFF, INF, INF | NEGATIVE),
        (INF, INF, INF),
        (INF, 0, NAN),
        (0x7F800001, ONE, NAN),
        (ONE + 1, ONE, ONE + 1),
        (0x3FFFFFFF, 0xBFFFFFFF, 0xC07FFFFE),
        (0x00000FFF, ONE, 0x00000FFF),
    ],
    ids=lambda word: f"{word:x}",
)
def test_four_passes_of_fp32_special_values_travel_in_the_first(x, w, expected):
    assert four_passes(x, w) == expected


def test_a_zero_of_a_low_half_and_no_other_leaves_the_accumulator_as_it_is():
    assert mac(np.uint32(ONE), np.uint32(ONE), np.uint32(NEGATIVE), FP32, "hi", "lo") == NEGATIVE
    assert mac(np.uint32(ONE), np.uint32(ONE), np.uint32(NEGATIVE), FP32, "lo", "hi") == NEGATIVE
    assert mac(np.uint32(0), np.uint32(ONE + 1), np.uint32(NEGATIVE), FP32, "hi", "lo") == 0
    assert mac(np.uint32(0), np.uint32(ONE), np.uint32(NEGATIVE), FP32, "hi", "hi") == 0
    assert mac(np.uint32(ONE), np.uint32(ONE), np.uint32(0xFF800001), FP32, "lo", "lo") == NAN


def test_int8_products_are_exact():
    codes = np.arange(256, dtype=np.uint8)
    x, w = codes[:, np.newaxis], codes[np.newaxis, :]
    numbers = codes.view(np.int8).astype(np.int64)
    products = (numbers[:, np.newaxis] * numbers + 1_000_000).astype(np.float32)
    assert_same_bits(mac(x, w, np.float32(1_000_000).view(np.uint32), INT8), products.view(np.uint32))


def test_shapes_broadcast():
    x, w, acc = np.zeros((4, 1), np.float32), np.zeros(3, np.float32), np.zeros((2, 1, 1), np.float32)
    assert fma_fp32(x, w, acc).shape == (2, 4, 3)
    assert fma_fp32(x, w, acc).dtype == np.float32
    assert add_fp32(x, w).shape == (4, 3)
