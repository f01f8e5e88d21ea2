"""Multiplication and the fused multiply-add of whole FP32 operands against Berkeley SoftFloat, both ways to compute."""

import numpy as np
import pytest

from neuroncore_rtl.golden.arith import canonical, fma_fp32, fused, multiply_add_fp32, multiply_fp32
from neuroncore_rtl.tb.check.oracles import softfloat
from neuroncore_rtl.tb.check.oracles.compare import assert_same_bits
from neuroncore_rtl.tb.stimulus.alu_cases import fma_cases, multiply_cases
from neuroncore_rtl.tb.stimulus.operands import special_fp32

SEED = 21
COUNT = 300_000
NAN, INF, ONE, NEGATIVE = 0x7FC00000, 0x7F800000, 0x3F800000, 0x80000000
WAYS = (multiply_add_fp32, fused.multiply_add_exactly)


def bits(function, *words):
    return function(*(np.asarray(word, np.uint32).view(np.float32) for word in words)).view(np.uint32)


def test_multiplication_agrees_with_softfloat(rng):
    cases = multiply_cases(rng, COUNT)
    assert_same_bits(bits(multiply_fp32, *cases), canonical(softfloat.multiply(*cases)), *cases)


def test_products_of_special_values_agree_with_softfloat():
    cases = [words.ravel() for words in np.meshgrid(special_fp32(), special_fp32())]
    assert_same_bits(bits(multiply_fp32, *cases), canonical(softfloat.multiply(*cases)), *cases)


@pytest.mark.parametrize("function", WAYS)
def test_multiply_add_agrees_with_softfloat(rng, function):
    cases = fma_cases(rng, COUNT)
    assert_same_bits(bits(function, *cases), canonical(softfloat.mul_add(*cases)), *cases)


@pytest.mark.parametrize("function", WAYS)
def test_multiply_add_of_special_values_agrees_with_softfloat(function):
    some = special_fp32()[::2]
    cases = [words.ravel() for words in np.meshgrid(some, some, some)]
    assert_same_bits(bits(function, *cases), canonical(softfloat.mul_add(*cases)), *cases)


def test_the_sum_of_doubles_that_serves_short_operands_is_not_enough(rng):
    cases = fma_cases(rng, COUNT)
    twice_rounded, once = bits(fma_fp32, *cases), bits(multiply_add_fp32, *cases)
    assert 0 < (twice_rounded != once).sum() < COUNT / 10


def test_without_the_processors_instruction_the_exact_way_is_taken(rng, monkeypatch):
    def refuse():
        raise AssertionError("the compiled way must not be taken")

    monkeypatch.setattr(fused, "has_fused_multiply_add", lambda: False)
    monkeypatch.setattr(fused, "_compiled", refuse)
    cases = fma_cases(rng, 1_000)
    assert_same_bits(bits(multiply_add_fp32, *cases), canonical(softfloat.mul_add(*cases)), *cases)


@pytest.mark.parametrize("function", WAYS)
@pytest.mark.parametrize(
    "a, b, c, expected",
    [
        (ONE + 1, ONE + 1, 0xBF800002, 0x28800000),
        (ONE, ONE, ONE | NEGATIVE, 0),
        (NEGATIVE, ONE, NEGATIVE, NEGATIVE),
        (NEGATIVE, ONE, 0, 0),
        (INF, 0, ONE, NAN),
        (INF, ONE, INF | NEGATIVE, NAN),
        (0x7F7FFFFF, 0x40000000, 0xFF7FFFFF, 0x7F7FFFFF),
        (1, 1, NEGATIVE | 1, NEGATIVE | 1),
        (0xFF800001, ONE, ONE, NAN),
    ],
)
def test_special_values(function, a, b, c, expected):
    assert int(bits(function, a, b, c)) == expected


@pytest.mark.parametrize("function", WAYS)
def test_shapes_broadcast(function):
    a, b, c = np.ones((4, 1), np.float32), np.ones(3, np.float32), np.ones((2, 1, 1), np.float32)
    assert function(a, b, c).shape == (2, 4, 3)
    assert function(a, b, c).dtype == np.float32
    assert function(np.float32(2), np.float32(3), np.float32(4)) == 10
