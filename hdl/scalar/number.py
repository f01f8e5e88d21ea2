"""An FP32 word taken apart, subnormals normalised, as the activation datapath works on it."""

from amaranth import Cat, Module, Signal, Value, signed, unsigned
from amaranth.lib import data

from neuroncore_rtl.hdl.arith.normalise import normalise
from neuroncore_rtl.spec.formats import FP32

__all__ = ["EXPONENT", "Number", "decode"]

EXPONENT = signed(9)
"""Shape of an exponent, from -149 (the smallest subnormal) to 128 (infinities and NaN)."""


class Number(data.Struct):
    """significand * 2**(exponent - 23), its top bit one, unless a flag says that it is something else."""

    significand: unsigned(FP32.precision)
    exponent: EXPONENT
    sign: unsigned(1)
    zero: unsigned(1)
    infinite: unsigned(1)
    nan: unsigned(1)


def decode(m: Module, word: Value, name: str) -> Signal:
    """Return a combinational signal with the :class:`Number` of an FP32 word.

    Arguments:
        m: the module that receives the logic.
        word: FP32 storage word.
        name: of the signal, and prefix of others, in waveforms.
    """
    number = Signal(Number, name=name)
    fraction, field = word[: FP32.mantissa_bits], word[FP32.mantissa_bits : 31]
    normal = field.any()
    significand, shift = normalise(m, Cat(fraction, normal), name)
    m.d.comb += [
        number.significand.eq(significand),
        # Subnormals share the exponent of field 1.
        number.exponent.eq(Cat(field[0] | ~normal, field[1:]) - FP32.bias - shift),
        number.sign.eq(word[31]),
        number.zero.eq(~word[:31].any()),
        number.infinite.eq(field.all() & ~fraction.any()),
        number.nan.eq(field.all() & fraction.any()),
    ]
    return number
