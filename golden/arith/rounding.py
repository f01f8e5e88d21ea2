"""Rounding of FP32 to every format, to nearest even or stochastic, in integer arithmetic.

A finite x is significand * 2**(exponent - 150). In units of the target's last place 2**place it has an integer part and
a fraction f, cut to 32 bits. The rounding modes differ only in when they add one to the integer part. The cut needs no
sticky bit: x has 24 bits, so if any of its bits lies below 2**-32, all of them lie below 2**-9, far from a tie.
"""

import numpy as np

from neuroncore_rtl.golden.arith.codec import storage_dtype
from neuroncore_rtl.golden.arith.threefry import random_words
from neuroncore_rtl.spec.formats import FP32, FloatFormat, Format, IntFormat

__all__ = ["round_fp32", "round_stochastic"]

MODES = ("rne", "sr")
"""Rounding modes: to nearest even, stochastic."""

_HALF = 1 << 31
_ONE = 1 << 32


def round_fp32(value_bits, fmt: Format, mode: str = "rne", random=None) -> np.ndarray:
    """Round FP32 bit patterns to codes of `fmt`, once.

    Float targets keep subnormals and the sign of a zero, overflow to infinity, and have only the canonical NaN. Integer
    targets saturate, infinities too; NaN gives 0.

    `mode` is "rne" or "sr". Stochastic rounding, with 32-bit words `random`, rounds away from zero iff
    f * 2**32 + random >= 2**32, with the discarded fraction f of the module's docstring.
    """
    if mode not in MODES:
        raise ValueError(f"mode must be one of {', '.join(MODES)}, not {mode!r}")
    if (mode == "sr") != (random is not None):
        raise ValueError(f"random must be {'given for sr' if mode == 'sr' else 'None for rne'}, not {random!r}")
    bits = np.asarray(value_bits, np.uint32).astype(np.int64)
    sign, exponent, mantissa = bits >> 31, (bits >> 23) & 0xFF, bits & 0x7FFFFF
    significand = mantissa + (np.minimum(exponent, 1) << 23)
    exponent = np.maximum(exponent, 1)

    place = _last_place(exponent, fmt)
    integer, fraction = _in_units_of(place, significand, exponent - 150)
    if mode == "rne":
        up = (fraction > _HALF) | (fraction == _HALF) & (integer & 1 == 1)
    else:
        up = fraction + np.asarray(random, np.uint32) >= _ONE
    rounded = integer + up

    is_nan = (exponent == 0xFF) & (mantissa != 0)
    is_inf = (exponent == 0xFF) & (mantissa == 0)
    if isinstance(fmt, FloatFormat):
        return _float_code(sign, rounded, place, is_inf, is_nan, fmt)
    return _integer_code(sign, rounded, is_inf, is_nan, fmt)


def round_stochastic(value_bits, fmt: Format, seed: int, stream: int, index) -> np.ndarray:
    """Round FP32 stochastically with `golden.arith.threefry.random_words`."""
    return round_fp32(value_bits, fmt, "sr", random_words(seed, stream, index))


def _last_place(exponent: np.ndarray, fmt: Format) -> np.ndarray:
    if not isinstance(fmt, FloatFormat):
        return np.zeros_like(exponent)
    return np.maximum(exponent - FP32.bias, fmt.min_exponent) - fmt.mantissa_bits


def _in_units_of(place: np.ndarray, significand: np.ndarray, exponent: np.ndarray):
    right = np.clip(place - exponent, 0, 62)  # a shift by 56 already removes all 24 + 32 bits
    left = np.clip(exponent - place, 0, 32)  # positive for integer targets only; 2**(23 + 32) saturates each of them
    fixed = (significand << 32) >> right
    return (fixed >> 32) << left, fixed & (_ONE - 1)


def _float_code(sign, rounded, place, is_inf, is_nan, fmt: FloatFormat) -> np.ndarray:
    """Return the code of a rounded value, rounded * 2**place; a carry out of the mantissa increments the exponent."""
    binade = place + fmt.mantissa_bits - fmt.min_exponent
    magnitude = ((binade << fmt.mantissa_bits) + rounded) << fmt.padding_bits
    magnitude = np.where(is_inf, fmt.infinity, np.minimum(magnitude, fmt.infinity))
    return np.where(is_nan, fmt.nan, (sign << (fmt.bits - 1)) | magnitude).astype(storage_dtype(fmt))


def _integer_code(sign, rounded, is_inf, is_nan, fmt: IntFormat) -> np.ndarray:
    magnitude = np.where(is_inf, _ONE, rounded)
    value = np.clip(np.where(sign, -magnitude, magnitude), fmt.min, fmt.max)
    return (np.where(is_nan, 0, value) & ((1 << fmt.bits) - 1)).astype(storage_dtype(fmt))
