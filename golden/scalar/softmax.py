"""Softmax of rows of any length, in the order in which a kernel computes it on both engines."""

import numpy as np

from neuroncore_rtl.golden.arith import storage_dtype
from neuroncore_rtl.golden.arith.words import load_words, store_words
from neuroncore_rtl.golden.scalar.engine import activation
from neuroncore_rtl.golden.vector.operations import chain, reciprocal
from neuroncore_rtl.golden.vector.reduction import negative, reduce_words, running_sum
from neuroncore_rtl.spec.formats import FP32, Format
from neuroncore_rtl.spec.isa import AluOp

__all__ = ["softmax"]

BLOCK = 1 << 16
"""Elements computed at a time: they stay in the second-level cache."""

_ONE = np.uint32(0x3F80_0000)


def softmax(codes, fmt: Format = FP32) -> np.ndarray:
    """Return exp(x - max) / sum(exp(x - max)) along the last axis, as codes of the float format `fmt`.

    TENSOR_REDUCE max, negated; ACTIVATE exp with the negated maximum as bias, and with a running sum; RECIPROCAL of the
    sum; TENSOR_SCALAR multiply. All in FP32, each operation rounded once, the sum in order.
    """
    codes = np.asarray(codes, storage_dtype(fmt))
    rows = codes.reshape(-1, codes.shape[-1])
    results = np.empty_like(rows)
    step = max(1, BLOCK // codes.shape[-1])
    for first in range(0, len(rows), step):
        x = load_words(rows[first : first + step], fmt)
        bias = negative(reduce_words(AluOp.MAX, x))
        powers = activation("exp", x, _ONE, bias[:, np.newaxis])
        shares = reciprocal(running_sum(powers, np.uint32(0)))
        scaled = chain(powers, shares[:, np.newaxis], np.uint32(0), AluOp.MULTIPLY, AluOp.BYPASS)
        results[first : first + step] = store_words(scaled, fmt)
    return results.reshape(codes.shape)
