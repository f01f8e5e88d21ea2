"""Golden against SoftFloat, by a comparison that can say no; a missing compiler is named."""

import numpy as np
import pytest

from neuroncore_rtl.tb.check.oracles import softfloat
from neuroncore_rtl.tb.check.oracles.compare import assert_same_bits
from neuroncore_rtl.tb.stimulus.campaign import OPERATIONS

SEED = 15


@pytest.mark.parametrize("name", OPERATIONS)
def test_operation_agrees_with_softfloat_and_a_flipped_bit_is_found(name, rng):
    cases, ours, theirs = OPERATIONS[name](rng, 100_000)
    assert_same_bits(ours, theirs, *cases)
    ours = ours.copy()
    ours[617] ^= 1
    with pytest.raises(AssertionError, match="1 of 100000 differ"):
        assert_same_bits(ours, theirs, *cases)


def test_an_empty_comparison_is_refused():
    with pytest.raises(AssertionError, match="nothing was compared"):
        assert_same_bits(np.array([], np.uint32), np.array([], np.uint32))


def test_zeros_of_different_sign_differ_and_nans_do_not():
    assert_same_bits(np.float32([np.nan, -0.0]), np.float64([-np.nan, -0.0]))
    with pytest.raises(AssertionError, match="1 of 1 differ"):
        assert_same_bits(np.float32([0.0]), np.float32([-0.0]))


def test_the_same_seed_gives_the_same_cases():
    for operation in OPERATIONS.values():
        first, again = (operation(np.random.default_rng(SEED), 100)[0] for _ in range(2))
        assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))


def test_a_missing_compiler_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(softfloat.OracleError, match="needs gcc and make: apt-get install gcc make"):
        softfloat._build(tmp_path / "build", tmp_path / "library.so")


def test_operands_of_different_length_are_refused():
    with pytest.raises(ValueError, match="operands must be one-dimensional and of one length"):
        softfloat.add(np.zeros(2, np.uint32), np.zeros(3, np.uint32))
