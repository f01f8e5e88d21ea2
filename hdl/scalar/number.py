"""An FP32 word taken apart, subnormals normalised, as the activation datapath works on it."""

from types import SimpleNamespace

from amaranth import Cat, Module, Signal, Value, signed, unsigned
from amaranth.lib import data

from neuroncore_rtl.hdl.arith.fp32 import Fp32
from neuroncore_rtl.hdl.arith.normalise import normalise_partly
from neuroncore_rtl.spec.formats import FP32

__all__ = ["EXPONENT", "Number", "begun", "decode_number", "normalised", "placed"]

EXPONENT = signed(9)
"""Shape of an exponent, from -149 (the smallest subnormal) to 128 (infinities and NaN)."""

_COARSE, _FINE = range(3, 5), range(3)
"""Digits of the shift that normalises a significand."""


class Number(data.Struct):
    """significand * 2**(exponent - 23), its top bit one, unless a flag says that it is something else."""

    significand: unsigned(FP32.precision)
    exponent: EXPONENT
    sign: unsigned(1)
    zero: unsigned(1)
    infinite: unsigned(1)
    nan: unsigned(1)


def decode_number(m: Module, word: Value, name: str) -> Signal:
    """Return a combinational signal with the :class:`Number` of an FP32 word.

    Arguments:
        m: the module that receives the logic.
        word: FP32 storage word.
        name: of the signal, and prefix of others, in waveforms.
    """
    return placed(m, SimpleNamespace(**normalised(m, begun(m, word, name), name)), name)


def begun(m: Module, word: Value, name: str) -> SimpleNamespace:
    """Return what :func:`normalised` goes on with, so that a register may stand in between; arguments as above."""
    fp32 = Fp32(word)
    significand, coarse, _ = normalise_partly(m, fp32.significand, name, _COARSE, None, None)
    return SimpleNamespace(
        significand=significand, coarse=coarse, field=fp32.exponent, sign=fp32.sign, zero=fp32.zero,
        infinite=fp32.infinite, nan=fp32.nan,
    )  # fmt: skip


def normalised(m: Module, parts: SimpleNamespace, name: str) -> dict[str, Value]:
    """Return, of what :func:`begun` returned, what :func:`placed` makes the number of, likewise."""
    significand, fine, _ = normalise_partly(m, parts.significand, name, _FINE, None, None)
    values = dict(vars(parts))
    coarse = values.pop("coarse")
    return values | {"significand": significand, "shift": Cat(fine, coarse)}


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
