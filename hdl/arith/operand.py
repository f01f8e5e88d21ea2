"""The one form in which an operand travels inside the array.

The edge decoder turns every number format into it, so that a processing element never sees a data type. The value is
(-1)**sign * significand * 2**(exponent - BIAS - 11), if significands have 12 bits; a nonzero one has its top bit set,
zero has significand and exponent 0, whose product then lies below every accumulator. Infinities and NaN are flags; both
flags at once mean *absent*: the element is masked and the accumulator passes unchanged.
"""

from amaranth import unsigned
from amaranth.lib import data

__all__ = ["EXPONENT_BITS", "OPERAND_BIAS", "SIGNIFICAND_BITS", "Operand"]

SIGNIFICAND_BITS = 12
EXPONENT_BITS = 10
OPERAND_BIAS = 512
"""Added to the unbiased exponent; FP32 spans -149 (smallest subnormal, normalised) to 127, so 10 bits suffice."""


class Operand(data.StructLayout):
    """Significand, biased exponent, sign, and the flags `inf` and `nan`: 25 bits.

    Arguments:
        significand_bits: of the significand; fewer than `SIGNIFICAND_BITS` lack the lowest ones.
    """

    def __init__(self, significand_bits: int = SIGNIFICAND_BITS):
        flags = {"sign": unsigned(1), "inf": unsigned(1), "nan": unsigned(1)}
        super().__init__({"significand": unsigned(significand_bits), "exponent": unsigned(EXPONENT_BITS), **flags})
