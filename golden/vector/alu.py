"""ALU of the vector engine's datapath: the operations of `spec.isa.alu` on arrays of words."""

from functools import partial

import numpy as np

from neuroncore_rtl.golden.arith import (
    add_fp32,
    canonical,
    canonical_value,
    divide_fp32,
    fmod_fp32,
    mod_fp32,
    multiply_fp32,
    power_fp32,
)
from neuroncore_rtl.spec.formats import FP32
from neuroncore_rtl.spec.isa.alu import FLOAT_ONLY, AluOp, Arithmetic

__all__ = ["alu", "rank"]

_COMPARISONS = {
    AluOp.IS_EQUAL: np.equal,
    AluOp.NOT_EQUAL: np.not_equal,
    AluOp.IS_GT: np.greater,
    AluOp.IS_GE: np.greater_equal,
    AluOp.IS_LT: np.less,
    AluOp.IS_LE: np.less_equal,
}

_LOGICAL = {
    AluOp.LOGICAL_AND: np.logical_and,
    AluOp.LOGICAL_OR: np.logical_or,
    AluOp.LOGICAL_XOR: np.logical_xor,
}

_ON_WORDS = {
    AluOp.BITWISE_AND: np.bitwise_and,
    AluOp.BITWISE_OR: np.bitwise_or,
    AluOp.BITWISE_XOR: np.bitwise_xor,
    AluOp.LOGICAL_SHIFT_LEFT: np.left_shift,
    AluOp.LOGICAL_SHIFT_RIGHT: np.right_shift,
}
"""Operations with the same result in every arithmetic. A numpy shift by the width or more gives 0, as required."""


def _integral(whole: np.ufunc, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        return np.broadcast_arrays(canonical_value(whole(a)), b)[0]


_FLOAT = {
    AluOp.ADD: add_fp32,
    AluOp.SUBTRACT: lambda a, b: add_fp32(a, -b),
    AluOp.MULTIPLY: multiply_fp32,
    AluOp.DIVIDE: divide_fp32,
    AluOp.POWER: power_fp32,
    AluOp.MOD: mod_fp32,
    AluOp.FMOD: fmod_fp32,
    AluOp.FLOOR: partial(_integral, np.floor),
    AluOp.CEIL: partial(_integral, np.ceil),
    AluOp.TRUNC: partial(_integral, np.trunc),
}

_MAGNITUDES = {AluOp.LARGER_MAGNITUDE: np.greater, AluOp.SMALLER_MAGNITUDE: np.less}

_WRAPPING = {AluOp.ADD: np.add, AluOp.SUBTRACT: np.subtract, AluOp.MULTIPLY: np.multiply}

_MAGNITUDE = np.uint32(0x7FFFFFFF)


def alu(op: AluOp, a, b, arithmetic: Arithmetic = Arithmetic.FP32) -> np.ndarray:
    """Return op(a, b) of words (uint32) that broadcast; BYPASS returns a.

    FP32 results have canonical NaNs, except for BYPASS; integers wrap. Comparisons and logical operations give 1 or 0
    in the format of the arithmetic; bitwise operations ignore the arithmetic. Raises ValueError if integers lack the
    operation.
    """
    if arithmetic and op in FLOAT_ONLY:
        raise ValueError(f"integers have no operation {op.name}")
    a, b = np.asarray(a, np.uint32), np.asarray(b, np.uint32)
    if op is AluOp.BYPASS:
        return np.broadcast_arrays(a, b)[0].copy()
    if op in _ON_WORDS:
        return np.asarray(_ON_WORDS[op](a, b))
    return _integer(op, a, b, arithmetic) if arithmetic else _float(op, a, b)


def _integer(op: AluOp, a: np.ndarray, b: np.ndarray, arithmetic: Arithmetic) -> np.ndarray:
    if op in _WRAPPING:
        with np.errstate(over="ignore"):
            return np.asarray(_WRAPPING[op](a, b))
    if arithmetic == Arithmetic.INT32:
        a, b = a.view(np.int32), b.view(np.int32)
    if op in _COMPARISONS:
        return _COMPARISONS[op](a, b).astype(np.uint32)
    if op in _LOGICAL:
        return _LOGICAL[op](a, b).astype(np.uint32)
    if op in _MAGNITUDES:
        return np.where(_MAGNITUDES[op](np.abs(a), np.abs(b)), a, b).view(np.uint32)
    if op is AluOp.ABSOLUTE_MAX:
        a, b = np.abs(a), np.abs(b)
    return np.asarray((np.minimum if op is AluOp.MIN else np.maximum)(a, b)).view(np.uint32)


def _float(op: AluOp, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if op in _FLOAT:
        return np.asarray(_FLOAT[op](a.view(np.float32), b.view(np.float32))).view(np.uint32)
    truths = _COMPARISONS.get(op) or _LOGICAL.get(op)
    if truths:
        with np.errstate(invalid="ignore"):
            return np.asarray(truths(a.view(np.float32), b.view(np.float32)).astype(np.float32)).view(np.uint32)
    if op in _MAGNITUDES:
        with np.errstate(invalid="ignore"):
            first = _MAGNITUDES[op](np.abs(a.view(np.float32)), np.abs(b.view(np.float32)))
        return canonical(np.where(first, a, b))
    if op is AluOp.ABSOLUTE_MAX:
        # Bit patterns of magnitudes are ordered as the magnitudes, and every NaN is above infinity.
        return canonical(np.maximum(a & _MAGNITUDE, b & _MAGNITUDE))
    chosen = (np.minimum if op is AluOp.MIN else np.maximum)(rank(a), rank(b))
    unordered = np.isnan(a.view(np.float32)) | np.isnan(b.view(np.float32))
    return np.where(unordered, np.uint32(FP32.nan), rank(chosen).view(np.uint32))


def rank(words: np.ndarray) -> np.ndarray:
    """Map FP32 patterns to integers with the order of their values, -0 below +0; the map is its own inverse."""
    words = words.view(np.int32)
    return words ^ (words >> 31 & np.int32(0x7FFFFFFF))
