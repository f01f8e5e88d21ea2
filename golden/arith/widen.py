"""Conversion of codes to FP32 or 32-bit integers, and saturation of integers to codes."""

from functools import cache

import numpy as np

from neuroncore_rtl.golden.arith.codec import canonical, decode, storage_dtype
from neuroncore_rtl.golden.arith.odd import round_to_odd
from neuroncore_rtl.spec.formats import FP32, FloatFormat, Format, IntFormat

__all__ = ["integers", "saturate", "widen"]

_TABLE_BITS = 16
"""Formats of up to this many bits are converted by table."""


def widen(codes, fmt: Format, odd: bool = False) -> np.ndarray:
    """Return codes as FP32 bit patterns, NaN canonical; exact, except that integers of more than 24 bits are rounded.

    They are rounded to nearest even, or if `odd` to odd, see `round_to_odd`.
    """
    codes = np.asarray(codes, storage_dtype(fmt))
    if fmt.bits <= _TABLE_BITS:
        return _table(fmt)[codes]
    if not isinstance(fmt, FloatFormat):
        numbers = codes.view(fmt.name)
        return round_to_odd(numbers) if odd else numbers.astype(np.float32).view(np.uint32)
    if fmt == FP32:
        return canonical(codes)
    padding = np.uint32((1 << fmt.padding_bits) - 1)
    is_nan = codes << np.uint32(1) > FP32.infinity << 1
    return np.where(is_nan, np.uint32(FP32.nan), codes & ~padding)


def integers(codes, fmt: IntFormat) -> np.ndarray:
    """Return codes of an integer format as 32-bit words, sign-extended if the format is signed."""
    _refuse_float(fmt)
    return np.asarray(codes, storage_dtype(fmt)).view(fmt.name).astype(np.int64).astype(np.uint32)


def saturate(values, fmt: IntFormat) -> np.ndarray:
    """Return integers as codes of an integer format, saturated to its range."""
    _refuse_float(fmt)
    return np.clip(np.asarray(values).astype(np.int64), fmt.min, fmt.max).astype(storage_dtype(fmt))


@cache
def _table(fmt: Format) -> np.ndarray:
    values = decode(np.arange(1 << fmt.bits), fmt).astype(np.float32)
    return canonical(values.view(np.uint32))


def _refuse_float(fmt: Format) -> None:
    if fmt.is_float:
        raise ValueError(f"format must be an integer format, not {fmt.name!r}")
