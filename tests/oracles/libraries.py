"""ml_dtypes and gfloat as oracles for decoding and rounding.

numpy warns about each signalling NaN that it converts; signalling NaNs are normal operands here.
"""

import gfloat
import gfloat.formats
import ml_dtypes
import numpy as np

from neuroncore_rtl.spec.formats import BF16, FP8E3M4, FP8E4M3, FP8E5M2, FP16, TF32, FloatFormat

__all__ = ["GFLOAT", "ML_DTYPES", "fp32_values", "gfloat_decode", "gfloat_round", "ml_dtypes_decode", "ml_dtypes_round"]

ML_DTYPES = {
    BF16: ml_dtypes.bfloat16,
    FP16: np.float16,
    FP8E4M3: ml_dtypes.float8_e4m3,
    FP8E5M2: ml_dtypes.float8_e5m2,
    FP8E3M4: ml_dtypes.float8_e3m4,
}
"""Formats of ml_dtypes (FP16: numpy), all IEEE-like, with infinities."""


def _ieee_like(name: str, exponent_bits: int, mantissa_bits: int) -> gfloat.FormatInfo:
    return gfloat.FormatInfo(
        name, 1 + exponent_bits + mantissa_bits, mantissa_bits + 1, bias=2 ** (exponent_bits - 1) - 1, is_signed=True,
        domain=gfloat.Domain.Extended, has_nz=True, num_high_nans=2**mantissa_bits - 1, has_subnormals=True,
        is_twos_complement=False,
    )  # fmt: skip


GFLOAT = {
    TF32: _ieee_like("tf32", 8, 10),
    BF16: gfloat.formats.format_info_bfloat16,
    FP16: gfloat.formats.format_info_binary16,
    FP8E4M3: _ieee_like("e4m3", 4, 3),
    FP8E5M2: gfloat.formats.format_info_ocp_e5m2,
    FP8E3M4: _ieee_like("e3m4", 3, 4),
}
"""Descriptions for gfloat of all formats shorter than FP32; gfloat's own description where it has one."""


def fp32_values(bits: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        return bits.view(np.float32).astype(np.float64)


def ml_dtypes_decode(bits: np.ndarray, fmt: FloatFormat) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        return bits.view(ML_DTYPES[fmt]).astype(np.float64)


def ml_dtypes_round(value_bits: np.ndarray, fmt: FloatFormat) -> np.ndarray:
    with np.errstate(all="ignore"):
        return value_bits.view(np.float32).astype(ML_DTYPES[fmt]).view(f"uint{fmt.bits}")


def gfloat_decode(bits: np.ndarray, fmt: FloatFormat) -> np.ndarray:
    """Return float64 values of codes; gfloat's TF32 is 19 bits wide, without padding."""
    return gfloat.decode_ndarray(GFLOAT[fmt], bits.astype(np.int64) >> fmt.padding_bits)


def gfloat_round(value_bits: np.ndarray, fmt: FloatFormat, random: np.ndarray | None = None) -> np.ndarray:
    """Return float64 values of FP32 patterns rounded to nearest even, or stochastically by random words.

    gfloat adds the discarded part and random * 2**-32 in float64, which is exact down to 2**-53 of the target's ulp.
    Stochastic rounding is defined on the part truncated to 2**-32, so bits below 2**-53 are cleared first.
    """
    value = fp32_values(value_bits)
    if random is None:
        return gfloat.round_ndarray(GFLOAT[fmt], value)
    grid = 2.0 ** (fmt.min_exponent - fmt.mantissa_bits - 53)
    value = np.where(np.isfinite(value), np.trunc(value / grid) * grid, value)
    mode = gfloat.RoundMode.StochasticFastest
    return gfloat.round_ndarray(GFLOAT[fmt], value, mode, srbits=random.astype(np.int64), srnumbits=32)
