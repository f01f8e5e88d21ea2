"""An FP32 word taken apart, subnormals normalised, as the activation datapath works on it."""

from types import SimpleNamespace

from amaranth import Module, Signal, Value, signed, unsigned
from amaranth.lib import data

from neuroncore_rtl.hdl.arith.fp32 import Fp32
from neuroncore_rtl.hdl.arith.normalise import normalise
from neuroncore_rtl.spec.formats import FP32

__all__ = ["EXPONENT", "Number", "decode", "normalised", "placed"]

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
    return placed(m, SimpleNamespace(**normalised(m, word, name)), name)


def normalised(m: Module, word: Value, name: str) -> dict[str, Value]:
    """Return what :func:`placed` makes the number of, so that a register may stand in between; arguments as above."""
    fp32 = Fp32(word)
    significand, shift = normalise(m, fp32.significand, name)
    return {
        "significand": significand, "shift": shift, "field": fp32.exponent, "sign": fp32.sign, "zero": fp32.zero,
        "infinite": fp32.infinite, "nan": fp32.nan,
    }  # fmt: skip


def placed(m: Module, parts: SimpleNamespace, name: str) -> Signal:
    """Return a combinational signal with the :class:`Number` of what :func:`normalised` returned."""
    number = Signal(Number, name=name)
    m.d.comb += [
        number.significand.eq(parts.significand),
        number.exponent.eq(parts.field - FP32.bias - parts.shift),
        number.sign.eq(parts.sign),
        number.zero.eq(parts.zero),
        number.infinite.eq(parts.infinite),
        number.nan.eq(parts.nan),
    ]
    return number
