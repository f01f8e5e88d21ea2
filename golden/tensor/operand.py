"""What the edge of the array makes of codes: values of at most 12 significand bits, and which of them are absent."""

from functools import cache

import numpy as np

from neuroncore_rtl.golden.arith import operand, storage_dtype
from neuroncore_rtl.spec.formats import BF16, FP32, Format

__all__ = ["array_operand"]

TABLE_BITS = 16
"""Codes of at most so many bits are looked up."""


def array_operand(bits, fmt: Format, half: int = 0, skip_zero: bool = False) -> tuple[np.ndarray, np.ndarray | None]:
    """Return (values, present) of codes.

    Arguments:
        bits: codes of `fmt`, unsigned, any shape.
        fmt: one of `spec.formats.MATMUL_FORMATS`.
        half: of FP32, 0 for the upper and 1 for the lower 12 bits of the significand; 0 for other formats. A zero of
            the lower half is absent, so that an infinity times the lower half of 1.0 makes no NaN.
        skip_zero: True makes every zero absent, as a transpose does with its moving operand.

    Returns:
        values: float32, the shape of `bits`.
        present: bool, the shape of `bits`, False where the operand is absent; None if all are present.

    Raises:
        ValueError: as :func:`golden.arith.operand`.
    """
    if fmt == FP32:
        values = operand(bits, fmt, ("hi", "lo")[half])
    elif fmt == BF16:
        # The upper half of FP32, which is several times faster than the table.
        values = (np.asarray(bits).astype(np.uint32) << np.uint32(16)).view(np.float32)
    elif fmt.bits <= TABLE_BITS:
        values = _table(fmt)[np.asarray(bits, storage_dtype(fmt))]
    else:
        values = operand(bits, fmt)
    return values, values != 0 if skip_zero or half == 1 else None


@cache
def _table(fmt: Format) -> np.ndarray:
    return operand(np.arange(1 << fmt.bits, dtype=storage_dtype(fmt)), fmt)
