"""Reductions and scan: op(op(op(x[0], x[1]), x[2]), ...) along the last axis, in order."""

from collections.abc import Callable
from functools import cache, reduce

import numpy as np

from neuroncore_rtl.golden.arith import canonical
from neuroncore_rtl.golden.arith.machine_code import FLOAT, INDEX, compile_function, counted_range, local, new_function
from neuroncore_rtl.golden.vector.alu import alu, rank
from neuroncore_rtl.golden.vector.operations import apply
from neuroncore_rtl.spec.formats import FP32
from neuroncore_rtl.spec.isa.alu import AluOp, Arithmetic

__all__ = ["negative", "reduce_words", "running_sum", "scan"]

_ROUNDED = {AluOp.ADD, AluOp.MULTIPLY}
"""FP32 operations with a result that depends on the order of the operands. All other reductions, except
`_LAST_OF_EQUALS`, are associative and commutative to the bit.
"""

_LAST_OF_EQUALS = {AluOp.LARGER_MAGNITUDE, AluOp.SMALLER_MAGNITUDE}
"""Operations that return their second operand unless the first has the larger, or smaller, magnitude."""

_EXTREMES = {AluOp.MAX: np.max, AluOp.MIN: np.min}


def reduce_words(op: AluOp, words, arithmetic: Arithmetic = Arithmetic.FP32) -> np.ndarray:
    """Reduce the last dimension of words [..., n], n >= 1, with `op`, one of `spec.isa.alu.REDUCTIONS`."""
    words = np.asarray(words, np.uint32)
    if op in _ROUNDED and not arithmetic:
        return _in_order(op, words[..., 0], words[..., 1:])
    if op in _EXTREMES and words.shape[-1] > 1:
        return _extreme(_EXTREMES[op], words, arithmetic)
    if op in _LAST_OF_EQUALS:
        return reduce(lambda total, x: alu(op, total, x, arithmetic), np.moveaxis(words, -1, 0))
    while words.shape[-1] > 1:
        half = words.shape[-1] // 2
        halves = alu(op, words[..., :half], words[..., half : 2 * half], arithmetic)
        words = np.concatenate((halves, words[..., 2 * half :]), -1)
    return words[..., 0]


def running_sum(words, start) -> np.ndarray:
    """Return fp32(... fp32(fp32(start + x[0]) + x[1]) ...) of [..., n] FP32 words and [...] starts."""
    return _in_order(AluOp.ADD, start, words)


def negative(words, arithmetic: Arithmetic = Arithmetic.FP32) -> np.ndarray:
    """Return -x: 0 - x for integers, the opposite sign bit in FP32."""
    words = np.asarray(words, np.uint32)
    return np.zeros_like(words) - words if arithmetic else words ^ np.uint32(1 << 31)


def scan(a, b, start, op0: AluOp, op1: AluOp, reverse0=False, reverse1=False, arithmetic=Arithmetic.FP32) -> np.ndarray:
    """Return all r[i] = op1(op0(a[i], r[i-1]), b[i]) with r[-1] = start; `reverse0` and `reverse1` swap operands.

    The operands a and b are words [..., n], `start` words [...].
    """
    a, b = (np.ascontiguousarray(np.moveaxis(np.asarray(x, np.uint32), -1, 0)) for x in (a, b))
    results = np.empty_like(a)
    previous = np.asarray(start, np.uint32)
    for i in range(len(a)):
        previous = apply(op1, apply(op0, a[i], previous, reverse0, arithmetic), b[i], reverse1, arithmetic)
        results[i] = previous
    return np.ascontiguousarray(np.moveaxis(results, 0, -1))


def _extreme(choose: Callable, words: np.ndarray, arithmetic: Arithmetic) -> np.ndarray:
    if arithmetic == Arithmetic.UINT32:
        return choose(words, -1)
    if arithmetic == Arithmetic.INT32:
        return choose(words.view(np.int32), -1).view(np.uint32)
    unordered = np.isnan(words.view(np.float32)).any(-1)
    return np.where(unordered, np.uint32(FP32.nan), rank(choose(rank(words), -1)).view(np.uint32))


def _in_order(op: AluOp, start, words: np.ndarray) -> np.ndarray:
    rows = np.ascontiguousarray(words, np.uint32).view(np.float32)
    results = np.array(np.broadcast_to(start, rows.shape[:-1]), np.uint32)
    _compiled(op)(rows, results, results.size, rows.shape[-1])
    return canonical(results)


@cache
def _compiled(op: AluOp):
    builder, (rows, totals, count, length) = new_function("in_order", *[FLOAT.as_pointer()] * 2, INDEX, INDEX)
    combine = builder.fadd if op is AluOp.ADD else builder.fmul
    with counted_range(builder, count) as row:
        total, place = local(builder, FLOAT), builder.gep(totals, [row])
        builder.store(builder.load(place), total)
        with counted_range(builder, length) as index:
            x = builder.load(builder.gep(rows, [builder.add(builder.mul(row, length), index)]))
            builder.store(combine(builder.load(total), x), total)
        builder.store(builder.load(total), place)
    return compile_function(builder)
