"""FP32 operations against Berkeley SoftFloat; remainders against numpy's float32 and rational numbers."""

import math
from fractions import Fraction

import numpy as np
import pytest

from neuroncore_rtl.golden import arith
from neuroncore_rtl.golden.arith import canonical, fused
from neuroncore_rtl.spec.formats import FP32
from neuroncore_rtl.tb.check.oracles import compare, softfloat
from neuroncore_rtl.tb.check.oracles.compare import assert_same_bits
from neuroncore_rtl.tb.stimulus import alu_cases, campaign
from neuroncore_rtl.tb.stimulus.alu_cases import remainder_cases, special_pairs
from neuroncore_rtl.tb.stimulus.operands import add_cases
from tests.oracles.exact import round_exactly
from tests.oracles.hard import hard_cases
from tests.oracles.words import on_words

COUNT = 300_000


@pytest.mark.parametrize(
    ("operation", "function", "oracle", "cases", "count"),
    [
        ("add", arith.add_fp32, softfloat.add, add_cases, COUNT),
        ("multiply", arith.multiply_fp32, softfloat.multiply, alu_cases.multiply_cases, COUNT),
        ("fma", arith.multiply_add_fp32, softfloat.mul_add, alu_cases.fma_cases, COUNT),
        ("fma", fused.multiply_add_exactly, softfloat.mul_add, alu_cases.fma_cases, COUNT),
        ("divide", arith.divide_fp32, softfloat.divide, alu_cases.divide_cases, 500_000),
    ],
)
def test_operation_agrees_with_softfloat(operation, function, oracle, cases, count, rng):
    for words in (cases(rng, count), hard_cases(operation)):
        compare.assert_same_bits(on_words(function, *words), canonical(oracle(*words)), *words)


def test_cases_reach_every_kind_of_quotient(rng):
    size = on_words(arith.divide_fp32, *alu_cases.divide_cases(rng, 50_000)) & 0x7FFFFFFF
    kinds = {
        "zero": size == 0,
        "subnormal": (size > 0) & (size < 0x00800000),
        "smallest normal": size == 0x00800000,
        "normal": (size > 0x00800000) & (size < 0x7F7FFFFF),
        "largest": size == 0x7F7FFFFF,
        "infinite": size == 0x7F800000,
        "NaN": size == FP32.nan,
    }
    assert {kind for kind, pairs in kinds.items() if pairs.any()} == set(kinds)


def test_the_sum_of_doubles_that_serves_short_operands_is_not_enough(rng):
    cases = alu_cases.fma_cases(rng, COUNT)
    twice_rounded, once = on_words(arith.fma_fp32, *cases), on_words(arith.multiply_add_fp32, *cases)
    assert 0 < (twice_rounded != once).sum() < COUNT / 10


def test_without_the_processors_instruction_the_exact_way_is_taken(rng, monkeypatch):
    def refuse():
        raise AssertionError("the compiled way must not be taken")

    monkeypatch.setattr(fused, "has_fused_multiply_add", lambda: False)
    monkeypatch.setattr(fused, "_compiled", refuse)
    cases = alu_cases.fma_cases(rng, 1_000)
    compare.assert_same_bits(on_words(arith.multiply_add_fp32, *cases), canonical(softfloat.mul_add(*cases)), *cases)


@pytest.mark.parametrize(
    ("function", "operands", "result"),
    [
        (arith.add_fp32, (2, 3), 5),
        (arith.multiply_fp32, (2, 3), 6),
        (arith.divide_fp32, (1, 2), 0.5),
        (arith.power_fp32, (2, 3), 8),
        (arith.fma_fp32, (2, 3, 4), 10),
        (arith.multiply_add_fp32, (2, 3, 4), 10),
        (fused.multiply_add_exactly, (2, 3, 4), 10),
    ],
)
def test_shapes_broadcast(function, operands, result):
    for shapes, whole in (((4, 1), (3,), (2, 1, 1)), (2, 4, 3)), (((0,), (0,), (0,)), (0,)), (((), (), ()), ()):
        actual = function(*(np.full(shape, x, np.float32) for shape, x in zip(shapes, operands, strict=False)))
        assert actual.shape == (whole if len(operands) == 3 else whole[-2:]) and actual.dtype == np.float32
        assert (actual == result).all()


@pytest.mark.parametrize("name", campaign.CAMPAIGN_OPERATIONS)
def test_operation_of_the_campaign_agrees_and_a_flipped_bit_is_found(name, rng):
    cases, ours, theirs = campaign.CAMPAIGN_OPERATIONS[name](rng, 100_000)
    compare.assert_same_bits(ours, theirs, *cases)
    ours = ours.copy()
    ours[617] ^= 1
    with pytest.raises(AssertionError, match="1 of 100000 differ"):
        compare.assert_same_bits(ours, theirs, *cases)


def test_an_empty_comparison_is_refused():
    with pytest.raises(AssertionError, match="nothing was compared"):
        compare.assert_same_bits(np.array([], np.uint32), np.array([], np.uint32))


def test_zeros_of_different_sign_differ_and_nans_do_not():
    compare.assert_same_bits(np.float32([np.nan, -0.0]), np.float64([-np.nan, -0.0]))
    with pytest.raises(AssertionError, match="1 of 1 differ"):
        compare.assert_same_bits(np.float32([0.0]), np.float32([-0.0]))


def test_the_same_seed_gives_the_same_cases():
    for operation in campaign.CAMPAIGN_OPERATIONS.values():
        first, again = (operation(np.random.default_rng(21), 100)[0] for _ in range(2))
        assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))


def test_a_step_of_the_build_that_fails_is_named():
    with pytest.raises(softfloat.OracleError, match="^false failed"):
        softfloat._run("false")


def test_operands_of_different_length_are_refused():
    with pytest.raises(ValueError, match="operands must be one-dimensional and of one length"):
        softfloat.add(np.zeros(2, np.uint32), np.zeros(3, np.uint32))


PAIRS = special_pairs()
FUNCTIONS = {"mod": (arith.mod_fp32, np.mod, math.floor), "fmod": (arith.fmod_fp32, np.fmod, math.trunc)}


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
