"""Comparisons of golden with SoftFloat: functions that return (cases, ours, theirs) with canonical NaN."""

from functools import partial

import numpy as np

from neuroncore_rtl.golden.arith import add_fp32, canonical, decode, mac, operand, round_fp32
from neuroncore_rtl.spec.formats import FP16, FP32, INT8, INT16, INT32, MAC_FORMATS, Format, IntFormat
from neuroncore_rtl.tb.check.oracles import softfloat
from neuroncore_rtl.tb.stimulus.operands import add_cases, mac_cases, random_codes, round_cases

__all__ = ["CAMPAIGN_OPERATIONS"]


def _mac(fmt: Format, x_half: str | None, w_half: str | None, rng, n):
    x, w, acc = mac_cases(rng, fmt, n, x_half, w_half)
    x_fp32, w_fp32 = operand(x, fmt, x_half).view(np.uint32), operand(w, fmt, w_half).view(np.uint32)
    theirs = softfloat.mul_add(x_fp32, w_fp32, acc)
    for half, word in ((x_half, x_fp32), (w_half, w_fp32)):
        if half == "lo":
            theirs = np.where(word << 1 == 0, acc, theirs)
    return (x, w, acc), mac(x, w, acc, fmt, x_half, w_half), canonical(theirs)


def _add(rng, n):
    a, b = add_cases(rng, n)
    ours = add_fp32(a.view(np.float32), b.view(np.float32)).view(np.uint32)
    return (a, b), ours, canonical(softfloat.add(a, b))


def _to_fp16(rng, n):
    value, _ = round_cases(rng, FP16, "rne", n)
    return (value,), round_fp32(value, FP16), canonical(softfloat.f32_to_f16(value), FP16)


def _to_integer(fmt: IntFormat, rng, n):
    """Compare conversions to integers; golden saturates the values beyond int32, which SoftFloat flags as invalid."""
    value, _ = round_cases(rng, fmt, "rne", n)
    integer, invalid = softfloat.f32_to_i32(value)
    is_nan, negative = (value & 0x7FFFFFFF) > 0x7F800000, value >> 31 == 1
    saturated = np.where(is_nan, 0, np.where(negative, fmt.min, fmt.max))
    theirs = np.where(invalid, saturated, np.clip(integer.astype(np.int64), fmt.min, fmt.max))
    return (value,), round_fp32(value, fmt), theirs & ((1 << fmt.bits) - 1)


def _from_fp16(rng, n):
    codes = random_codes(rng, FP16, n)
    ours = canonical(decode(codes, FP16).astype(np.float32).view(np.uint32))
    return (codes,), ours, canonical(softfloat.f16_to_f32(codes))


CAMPAIGN_OPERATIONS = {
    **{f"mac {fmt.name}": partial(_mac, fmt, None, None) for fmt in MAC_FORMATS},
    **{f"mac fp32 {x}*{w}": partial(_mac, FP32, x, w) for x in ("hi", "lo") for w in ("hi", "lo")},
    "add fp32": _add,
    "fp32 to fp16": _to_fp16,
    **{f"fp32 to {fmt.name}": partial(_to_integer, fmt) for fmt in (INT8, INT16, INT32)},
    "fp16 to fp32": _from_fp16,
}
"""Functions that compare an operation, by its name; conversions round to nearest even."""
