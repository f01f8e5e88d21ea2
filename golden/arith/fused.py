"""FP32 multiplication and fused multiply-add of any operands: IEEE 754 binary32, one rounding to nearest even."""

from functools import cache

import numpy as np

from neuroncore_rtl.golden.arith.codec import canonical_value
from neuroncore_rtl.golden.arith.machine_code import (
    FLOAT,
    INDEX,
    compile_function,
    counted_range,
    has_fused_multiply_add,
    multiply_add,
    new_function,
)

__all__ = ["multiply_add_exactly", "multiply_add_fp32", "multiply_fp32"]


def multiply_fp32(a, b) -> np.ndarray:
    """Return fp32(a * b), one rounding to nearest even, NaN canonical; float32 in and out."""
    with np.errstate(all="ignore"):
        return canonical_value(np.multiply(a, b, dtype=np.float32))


def multiply_add_fp32(a, b, c) -> np.ndarray:
    """Return fp32(a * b + c) of any float32, product exact, one rounding to nearest even, NaN canonical; broadcast.

    Uses the processor's fused multiply-add, the same IEEE 754 operation, if it has one.
    """
    if not has_fused_multiply_add():
        return multiply_add_exactly(a, b, c)
    operands = np.broadcast_arrays(*(np.asarray(operand, np.float32) for operand in (a, b, c)))
    results = np.empty(operands[0].shape, np.float32)
    _compiled()(*map(np.ascontiguousarray, operands), results, results.size)
    return canonical_value(results)


def multiply_add_exactly(a, b, c) -> np.ndarray:
    """Return the result of `multiply_add_fp32` on any processor.

    1. The product of two 24-bit significands is exact in float64.
    2. The float64 sum is rounded to odd: if it is inexact, its last bit is set. Knuth's two-sum gives its exact error.
    3. A sum rounded to odd never lies on an FP32 tie (53 bits are more than 24 + 2), so the cast rounds it like the
       exact sum.
    """
    with np.errstate(all="ignore"):
        product = np.multiply(a, b, dtype=np.float64)
        c = np.asarray(c, np.float32).astype(np.float64)
        total = np.asarray(product + c)
        of_c = total - product
        error = (product - (total - of_c)) + (c - of_c)
        word = total.view(np.int64)
        odd = np.isfinite(total) & (error != 0) & (word & 1 == 0)
        # Adding 1 to the bits of a float64 gives the next larger magnitude.
        word = word + np.where(odd, np.where((error > 0) == (total > 0), 1, -1), 0)
        return canonical_value(word.view(np.float64).astype(np.float32))


@cache
def _compiled():
    builder, (*operands, results, count) = new_function("multiply_add", *[FLOAT.as_pointer()] * 4, INDEX)
    with counted_range(builder, count) as index:
        a, b, c = (builder.load(builder.gep(operand, [index])) for operand in operands)
        builder.store(multiply_add(builder, a, b, c, fused=True), builder.gep(results, [index]))
    return compile_function(builder)
