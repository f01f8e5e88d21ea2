"""Conversion between codes of any format and the 32-bit words of the vector and scalar engines' datapaths."""

from typing import cast

import numpy as np

from neuroncore_rtl.golden.arith import canonical, integers, round_fp32, saturate, storage_dtype, widen
from neuroncore_rtl.spec.formats import BF16, FP32, Format, IntFormat
from neuroncore_rtl.spec.isa.alu import Arithmetic

__all__ = ["load_words", "store_words"]

BLOCK = 1 << 15
"""Elements rounded at a time: the 64-bit intermediate results stay in the second-level cache."""


def load_words(codes, fmt: Format, arithmetic: Arithmetic = Arithmetic.FP32, odd: bool = False) -> np.ndarray:
    """Return codes as words (uint32): FP32 patterns (for `odd` see `widen`), or integers of an integer `arithmetic`."""
    return integers(codes, cast("IntFormat", fmt)) if arithmetic else widen(codes, fmt, odd)


def store_words(words, fmt: Format, arithmetic: Arithmetic = Arithmetic.FP32, random=None) -> np.ndarray:
    """Return words (uint32) as codes: integers saturate, FP32 is rounded once; stochastically with `random` words."""
    words = np.ascontiguousarray(words, np.uint32)
    if arithmetic:
        whole = words if arithmetic == Arithmetic.UINT32 else words.view(np.int32)
        return saturate(whole, cast("IntFormat", fmt))
    if fmt == FP32:
        return canonical(words)
    if fmt == BF16 and random is None:
        return _upper_half(words)
    codes = np.empty(words.shape, storage_dtype(fmt))
    flat, results = words.reshape(-1), codes.reshape(-1)
    draws = None if random is None else np.broadcast_to(random, words.shape).reshape(-1)
    for first in range(0, flat.size, BLOCK):
        part = slice(first, first + BLOCK)
        if draws is None:
            results[part] = round_fp32(flat[part], fmt)
        else:
            results[part] = round_fp32(flat[part], fmt, "sr", draws[part])
    return codes


def _upper_half(words: np.ndarray) -> np.ndarray:
    """Round FP32 to BF16, its upper half, to nearest even; ten times as fast as `golden.arith.round_fp32`."""
    half = np.uint32(16)
    codes = (words + (np.uint32(0x7FFF) + (words >> half & np.uint32(1))) >> half).astype(np.uint16)
    codes[np.isnan(words.view(np.float32))] = BF16.nan
    return codes
