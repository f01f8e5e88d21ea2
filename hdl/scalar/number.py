"""An FP32 word taken apart, subnormals normalised, as the activation datapath works on it."""

from amaranth import Module, Signal, Value, signed, unsigned
from amaranth.lib import data

from neuroncore_rtl.hdl.arith.fp32 import Fp32
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
    fp32 = Fp32(word)
    significand, shift = normalise(m, fp32.significand, name)
    m.d.comb += [
        number.significand.eq(significand),
        number.exponent.eq(fp32.exponent - FP32.bias - shift),
        number.sign.eq(fp32.sign),
        number.zero.eq(fp32.zero),
        number.infinite.eq(fp32.infinite),
        number.nan.eq(fp32.nan),
    ]
    return number
