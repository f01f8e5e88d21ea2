"""FP32 values as bit patterns, and all codes of a format."""

from collections.abc import Callable

import numpy as np

from neuroncore_rtl.golden.arith import storage_dtype
from neuroncore_rtl.spec.formats import Format

__all__ = ["every_code", "floats", "on_words", "words"]


def words(values) -> np.ndarray:
    return np.asarray(values, np.float32).view(np.uint32)


def floats(patterns) -> np.ndarray:
    return np.asarray(patterns, np.uint32).view(np.float32)


def on_words(function: Callable, *operands) -> np.ndarray:
    return function(*map(floats, operands)).view(np.uint32)


def every_code(fmt: Format) -> np.ndarray:
    return np.arange(0, 1 << fmt.bits, 1 << getattr(fmt, "padding_bits", 0)).astype(storage_dtype(fmt))
