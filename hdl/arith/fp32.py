"""FP32 word with named parts, and its rounding to nearest even."""

from amaranth import Cat, Module, Mux, Signal, Value, unsigned
from amaranth.lib import data

from neuroncore_rtl.spec.formats import FP32

__all__ = ["Fp32", "round_fp32"]


class Fp32(data.Struct):
    """View of an FP32 storage word, `Fp32(word)`. The properties are combinational expressions."""

    fraction: unsigned(FP32.mantissa_bits)
    field: unsigned(FP32.exponent_bits)
    sign: unsigned(1)

    @property
    def normal(self) -> Value:
        """The significand has a leading one, because the number is neither zero nor subnormal."""
        return self.field.any()

    @property
    def significand(self) -> Value:
        """24 bits: the leading bit, which is 0 in a zero or subnormal, and the fraction."""
        return Cat(self.fraction, self.normal)

    @property
    def exponent(self) -> Value:
        """Biased exponent, 8 bits: the exponent field, or 1 for zeros and subnormals."""
        return Cat(self.field[0] | ~self.normal, self.field[1:])

    @property
    def special(self) -> Value:
        """The number is an infinity or NaN."""
        return self.field.all()

    @property
    def zero(self) -> Value:
        return ~self.as_value()[:31].any()

    @property
    def infinite(self) -> Value:
        return self.special & ~self.fraction.any()

    @property
    def nan(self) -> Value:
        return self.special & self.fraction.any()


def round_fp32(m: Module, significand: Value, field: Value, sign: Value, inf: Value, nan: Value) -> Signal:
    """Return the word of a number rounded to nearest even, combinationally.

    Fraction and exponent are rounded as one integer: a carry increments the exponent; a carry into the largest exponent
    gives infinity.

    Arguments:
        m: the module that receives the logic.
        significand: 24 result bits, the rounding bit, and one or more bits below it.
        field: exponent field, up to 10 bits; 0 if the top bit of the significand is 0.
        sign: sign of the result.
        inf: the result is infinite.
        nan: the result is NaN, without a sign; overrides `inf`.
    """
    tail = len(significand) - FP32.precision
    last, half, rest = significand[tail], significand[tail - 1], significand[: tail - 1].any()
    rounded = Signal(33)
    overflow = Signal()
    word = Signal(32)
    m.d.comb += [
        rounded.eq(Cat(significand[tail:-1], field) + (half & (rest | last))),
        overflow.eq(inf | (rounded[FP32.mantissa_bits :] >= (1 << FP32.exponent_bits) - 1)),
        word.eq(Mux(nan, FP32.nan, Cat(Mux(overflow, FP32.infinity, rounded[:31])[:31], sign))),
    ]
    return word
