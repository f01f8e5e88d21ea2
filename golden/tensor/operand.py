"""Edge decoder of the array: codes to values of at most 12 significand bits, and which of them are absent."""

from functools import cache

import numpy as np

from neuroncore_rtl.golden.arith import operand, storage_dtype
from neuroncore_rtl.spec.formats import BF16, FP32, Format

__all__ = ["array_operand"]

TABLE_BITS = 16
"""Formats of up to this many bits are converted by table."""


def array_operand(bits, fmt: Format, half: int = 0, skip_zero: bool = False) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the values that the array multiplies for codes of `fmt`, and which of them are present.

    `half` selects the upper (0) or lower (1) 12 bits of an FP32 significand; other formats have 0. A zero lower half is
    absent, so that an infinity times the lower half of 1.0 is not NaN. `skip_zero` makes every zero absent, as a
    transpose requires for its moving operand. The values are float32; presence is bool, or None if all are present.
    """
    if fmt == FP32:
        values = operand(bits, fmt, ("hi", "lo")[half])
    elif fmt == BF16:
        # BF16 is the upper half of FP32; the shift is several times faster than the table.
        values = (np.asarray(bits).astype(np.uint32) << np.uint32(16)).view(np.float32)
    elif fmt.bits <= TABLE_BITS:
        values = _table(fmt)[np.asarray(bits, storage_dtype(fmt))]
    else:
        values = operand(bits, fmt)
    return values, values != 0 if skip_zero or half == 1 else None


@cache
def _table(fmt: Format) -> np.ndarray:
    return operand(np.arange(1 << fmt.bits, dtype=storage_dtype(fmt)), fmt)
