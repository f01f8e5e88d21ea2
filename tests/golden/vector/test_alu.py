"""ALU operations against Berkeley SoftFloat, numpy and Python integers."""

import math

import numpy as np
import pytest

from neuroncore_rtl.golden.arith import canonical
from neuroncore_rtl.golden.vector.alu import alu
from neuroncore_rtl.spec.formats import FP32
from neuroncore_rtl.spec.isa.alu import BITWISE, FLOAT_ONLY, AluOp, Arithmetic
from neuroncore_rtl.tb.check.oracles import compare, softfloat
from neuroncore_rtl.tb.stimulus.alu_cases import alu_cases
from tests.oracles import elementwise
from tests.oracles.hard import hard_cases

SEED = 23
ONE, NAN, NEGATIVE = 0x3F800000, FP32.nan, 0x80000000
MAGNITUDE = np.uint32(0x7FFFFFFF)


def pairs(rng, count=100_000):
    return np.concatenate([alu_cases(rng, count), hard_cases("alu")], axis=1)


def softfloat_maximum(a, b):
    larger = np.where(softfloat.less(a, b), b, a)
    larger = np.where(softfloat.equal(a, b), a & b, larger)
    return np.where(softfloat.less_equal(a, b) | softfloat.less_equal(b, a), larger, NAN)


def negated(words):
    return words ^ np.uint32(NEGATIVE)


def nonzero(words):
    return ~softfloat.equal(words, np.zeros_like(words))


def integral(whole):
    def rounded(a, b):
        results = [math.copysign(whole(x), x) if math.isfinite(x) else x for x in a.view(np.float32).tolist()]
        return canonical(np.array(results, np.float32).view(np.uint32))

    return rounded


def select_by_magnitude(first):
    return lambda a, b: canonical(np.where(first(a & MAGNITUDE, b & MAGNITUDE), a, b))


def of_numpy(function):
    def on_patterns(a, b):
        with np.errstate(invalid="ignore"):
            return canonical(function(a.view(np.float32), b.view(np.float32)).view(np.uint32))

    return on_patterns


FLOAT = {
    AluOp.BYPASS: lambda a, b: a,
    AluOp.ADD: lambda a, b: canonical(softfloat.add(a, b)),
    AluOp.SUBTRACT: lambda a, b: canonical(softfloat.add(a, negated(b))),
    AluOp.MULTIPLY: lambda a, b: canonical(softfloat.multiply(a, b)),
    AluOp.DIVIDE: lambda a, b: canonical(softfloat.divide(a, b)),
    AluOp.MAX: softfloat_maximum,
    AluOp.MIN: lambda a, b: canonical(negated(softfloat_maximum(negated(a), negated(b)).astype(np.uint32))),
    AluOp.ABSOLUTE_MAX: lambda a, b: softfloat_maximum(a & MAGNITUDE, b & MAGNITUDE),
    AluOp.LARGER_MAGNITUDE: select_by_magnitude(lambda a, b: softfloat.less(b, a)),
    AluOp.SMALLER_MAGNITUDE: select_by_magnitude(softfloat.less),
    AluOp.FLOOR: integral(math.floor),
    AluOp.CEIL: integral(math.ceil),
    AluOp.TRUNC: integral(math.trunc),
    AluOp.MOD: of_numpy(np.mod),
    AluOp.FMOD: of_numpy(np.fmod),
    AluOp.IS_EQUAL: lambda a, b: ONE * softfloat.equal(a, b),
    AluOp.NOT_EQUAL: lambda a, b: ONE * ~softfloat.equal(a, b),
    AluOp.IS_GT: lambda a, b: ONE * softfloat.less(b, a),
    AluOp.IS_GE: lambda a, b: ONE * softfloat.less_equal(b, a),
    AluOp.IS_LT: lambda a, b: ONE * softfloat.less(a, b),
    AluOp.IS_LE: lambda a, b: ONE * softfloat.less_equal(a, b),
    AluOp.LOGICAL_AND: lambda a, b: ONE * (nonzero(a) & nonzero(b)),
    AluOp.LOGICAL_OR: lambda a, b: ONE * (nonzero(a) | nonzero(b)),
    AluOp.LOGICAL_XOR: lambda a, b: ONE * (nonzero(a) ^ nonzero(b)),
}


@pytest.mark.parametrize("op", FLOAT)
def test_fp32_operation_agrees_with_softfloat(op, rng):
    a, b = pairs(rng)
    expected = FLOAT[op](a, b)
    assert len(np.unique(expected)) > 1
    compare.assert_same_bits(alu(op, a, b), expected, a, b)


@pytest.mark.parametrize(
    ("op", "arithmetic", "dtype"),
    [
        *((op, Arithmetic.INT32, np.int32) for op in elementwise.INTEGER),
        *((op, Arithmetic.UINT32, np.uint32) for op in elementwise.INTEGER),
        *((op, Arithmetic.FP32, np.uint32) for op in BITWISE),
    ],
)
def test_operation_of_integers_is_that_of_python(op, arithmetic, dtype, rng):
    a, b = pairs(rng, 10_000)
    operands = zip(a.view(dtype).tolist(), b.view(dtype).tolist(), strict=True)
    expected = [int(elementwise.INTEGER[op](*pair)) % (1 << 32) for pair in operands]
    compare.assert_same_bits(alu(op, a, b, arithmetic), np.array(expected, np.uint32), a, b)


def test_every_operation_is_tested():
    assert set(elementwise.INTEGER) == set(AluOp) - FLOAT_ONLY
    assert set(FLOAT) == set(AluOp) - BITWISE - {AluOp.POWER}


@pytest.mark.parametrize("arithmetic", Arithmetic)
@pytest.mark.parametrize("op", AluOp)
def test_shapes_broadcast_and_results_are_words(op, arithmetic):
    if op in FLOAT_ONLY and arithmetic:
        return
    a, b = np.full((4, 1), 5, np.uint32), np.full((3,), 2, np.uint32)
    for result, shape in ((alu(op, a, b, arithmetic), (4, 3)), (alu(op, a[0, 0], b[0], arithmetic), ())):
        assert (result.shape, result.dtype) == (shape, np.uint32)


def test_bypass_returns_a_copy():
    a = np.zeros(2, np.uint32)
    alu(AluOp.BYPASS, a, a)[0] = 1
    assert a.tolist() == [0, 0]


@pytest.mark.parametrize("op", sorted(FLOAT_ONLY))
def test_operation_that_integers_have_not_wrong(op):
    with pytest.raises(ValueError, match=f"integers have no operation {op.name}"):
        alu(op, 1, 1, Arithmetic.INT32)
