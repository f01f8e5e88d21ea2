"""Decoder of every number format, and the split of an FP32 significand into two 12-bit halves."""

import numpy as np

from neuroncore_rtl.spec.formats import FP32, MAC_FORMATS, FloatFormat, Format

__all__ = ["OPERAND_BITS", "canonical", "canonical_value", "decode", "operand", "storage_dtype"]

OPERAND_BITS = 12
"""Significand bits of an operand of the array. The 24 bits of an FP32 significand are split over two operands."""


def storage_dtype(fmt: Format) -> np.dtype:
    """Return the unsigned numpy type that holds one code of `fmt`."""
    return np.dtype(f"uint{fmt.bits}")


def decode(bits, fmt: Format) -> np.ndarray:
    """Return the exact values of codes of `fmt` as float64; -0, infinities and NaN are kept, except the payload of NaN.

    TF32 ignores its 13 padding bits, except that a set padding bit turns an infinity into a NaN.
    """
    bits = np.asarray(bits).astype(np.int64)
    if not isinstance(fmt, FloatFormat):
        return (bits - ((bits >> (fmt.bits - 1)) * fmt.signed << fmt.bits)).astype(np.float64)
    negative = bits >> (fmt.bits - 1) == 1
    word = bits & ((1 << (fmt.bits - 1)) - 1)
    mantissa = (word >> fmt.padding_bits) & ((1 << fmt.mantissa_bits) - 1)
    exponent = word >> (fmt.mantissa_bits + fmt.padding_bits)
    significand = mantissa + (np.minimum(exponent, 1) << fmt.mantissa_bits)
    finite = np.ldexp(significand.astype(np.float64), np.maximum(exponent, 1) - fmt.bias - fmt.mantissa_bits)
    magnitude = np.where(word > fmt.infinity, np.nan, np.where(word == fmt.infinity, np.inf, finite))
    return np.where(negative, -magnitude, magnitude)


def canonical(bits, fmt: FloatFormat = FP32) -> np.ndarray:
    """Return codes of `fmt` with every NaN replaced by the canonical NaN (positive, quiet, no payload)."""
    bits = np.asarray(bits)
    is_nan = (bits & ((1 << (fmt.bits - 1)) - 1)) > fmt.infinity
    bits = np.where(is_nan, fmt.nan, bits) if is_nan.any() else bits
    return bits.astype(storage_dtype(fmt))


def canonical_value(value) -> np.ndarray:
    """Return float32 values with every NaN replaced by the canonical NaN."""
    value = np.asarray(value, np.float32)
    is_nan = np.isnan(value)
    return np.where(is_nan, np.uint32(FP32.nan).view(np.float32), value) if is_nan.any() else value


def operand(bits, fmt: Format, half: str | None = None) -> np.ndarray:
    """Return array operands as float32: values of at most 12 significand bits.

    `half` is None, or for FP32 "hi" or "lo": the part of the value x to return. hi is x truncated to its 12 leading
    significand bits, also if x is subnormal; hi is 0 only if x is 0. lo is x - hi, with the sign of x. If x is an
    infinity or NaN, hi is x and lo is 0. Raises ValueError if the array does not multiply `fmt`, or `half` does
    not fit `fmt`.
    """
    if fmt == FP32:
        if half not in ("hi", "lo"):
            raise ValueError(f"half must be 'hi' or 'lo' for fp32, not {half!r}")
        return _half(decode(bits, FP32), half).astype(np.float32)
    if fmt not in MAC_FORMATS:
        raise ValueError(f"format must be fp32 or one of {', '.join(f.name for f in MAC_FORMATS)}, not {fmt.name!r}")
    if half is not None:
        raise ValueError(f"half must be None for {fmt.name}, not {half!r}")
    return decode(bits, fmt).astype(np.float32)


def _half(value: np.ndarray, half: str) -> np.ndarray:
    mantissa, exponent = np.frexp(value)
    hi = np.ldexp(np.trunc(np.ldexp(mantissa, OPERAND_BITS)), exponent - OPERAND_BITS)
    if half == "hi":
        return hi
    finite = np.isfinite(value)
    return np.copysign(np.where(finite, value, 0) - np.where(finite, hi, 0), value)
