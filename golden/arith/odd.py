"""Rounding to odd: FP32 words that a second rounding, to a narrower format, rounds as it would the exact numbers."""

import numpy as np

from neuroncore_rtl.golden.arith.rounding import round_fp32
from neuroncore_rtl.spec.formats import FP32, Format

__all__ = ["round_once", "round_to_odd"]

_SPARE = 11
"""Bits of a 64-bit integer that float64 cannot hold."""


def round_once(values, fmt: Format) -> np.ndarray:
    """Return numbers as codes of a format, rounded once, to nearest even; for their types see `round_to_odd`."""
    with np.errstate(over="ignore"):
        words = np.asarray(values).astype(np.float32).view(np.uint32) if fmt == FP32 else round_to_odd(values)
    return round_fp32(words, fmt)


def round_to_odd(values) -> np.ndarray:
    """Return numbers, real or integers of up to 64 bits, as FP32 bit patterns: exact, or rounded to odd.

    Rounding to odd truncates a number that is not representable and sets its last bit. The bit remembers that
    something was cut, so a second rounding to at most 22 significant bits never sees a false tie (Boldo and Melquiond,
    "Emulation of a FMA and correctly rounded sums: proved algorithms using rounding to odd", 2008). A number beyond the
    range of FP32 becomes the largest finite one, which every narrower format rounds to infinity.
    """
    values = np.asarray(values)
    if np.can_cast(values.dtype, np.float32):
        return values.astype(np.float32).view(np.uint32)
    exact = (_sticky(values) if values.dtype.kind in "biu" else values).astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        near = exact.astype(np.float32)
        cut = np.where(np.abs(near.astype(np.float64)) > np.abs(exact), np.nextafter(near, np.float32(0)), near)
        inexact = (cut != exact) & ~np.isnan(exact)
    return cut.view(np.uint32) | inexact


def _sticky(values: np.ndarray) -> np.ndarray:
    """Return integers that float64 holds exactly: a large one is rounded to odd, in units of 2**_SPARE."""
    values = values.astype(np.uint64 if values.dtype.kind == "u" else np.int64)
    large = (values < -(1 << 53)) | (values > 1 << 53)
    low = values & ((1 << _SPARE) - 1)
    return np.where(large, values - low | ((low != 0).astype(values.dtype) << _SPARE), values)
