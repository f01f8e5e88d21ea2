"""Operand format inside the array.

The edge decoder converts every number format to it, so that a processing element is independent of the data type. With
12-bit significands the value is (-1)**sign * significand * 2**(exponent - BIAS - 11). A nonzero value has its top bit
set. Zero has significand and exponent 0: its product lies below every accumulator. Infinities and NaN are flags. Both
flags together mean *absent*: the element is masked and the accumulator passes unchanged.
"""

from amaranth import unsigned
from amaranth.lib import data

__all__ = ["EXPONENT_BITS", "OPERAND_BIAS", "SIGNIFICAND_BITS", "Operand"]

SIGNIFICAND_BITS = 12
EXPONENT_BITS = 10
OPERAND_BIAS = 512
"""Added to the unbiased exponent; FP32 spans -149 (smallest subnormal, normalised) to 127, so 10 bits suffice."""


class Operand(data.StructLayout):
    """Significand, biased exponent, sign, and the flags `inf` and `nan`: 25 bits with a 12-bit significand.

    Arguments:
        significand_bits: width of the significand; fewer than `SIGNIFICAND_BITS` omit the lowest bits.
    """

    def __init__(self, significand_bits: int = SIGNIFICAND_BITS):
        flags = {"sign": unsigned(1), "inf": unsigned(1), "nan": unsigned(1)}
        super().__init__({"significand": unsigned(significand_bits), "exponent": unsigned(EXPONENT_BITS), **flags})
