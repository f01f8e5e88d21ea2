"""Decoding of an FP32 word to sign, exponent and normalised significand, for the activation datapath."""

from types import SimpleNamespace

from amaranth import Cat, Module, Signal, Value, signed, unsigned
from amaranth.lib import data

from neuroncore_rtl.hdl.arith.fp32 import Fp32
from neuroncore_rtl.hdl.arith.normalise import normalise_partly
from neuroncore_rtl.spec.formats import FP32

__all__ = ["EXPONENT", "Number", "decode_number", "decode_stage1", "decode_stage2", "decode_stage3"]

EXPONENT = signed(9)
"""Shape of an exponent, from -149 (the smallest subnormal) to 128 (infinities and NaN)."""

_COARSE, _FINE = range(3, 5), range(3)
"""Bits of the normalising shift amount that `decode_stage1` and `decode_stage2` apply."""


class Number(data.Struct):
    """An FP32 number: significand * 2**(exponent - 23), with the top bit of the significand one.

    Significand and exponent of a special value have no meaning.
    """

    significand: unsigned(FP32.precision)
    exponent: EXPONENT
    sign: unsigned(1)
    zero: unsigned(1)
    infinite: unsigned(1)
    nan: unsigned(1)


def decode_number(m: Module, word: Value, name: str) -> Signal:
    """Return the `Number` of an FP32 word in a combinational signal called `name`."""
    return decode_stage3(m, SimpleNamespace(**decode_stage2(m, decode_stage1(m, word, name), name)), name)


def decode_stage1(m: Module, word: Value, name: str) -> SimpleNamespace:
    """Extract the fields of an FP32 word, and begin to normalise. Registers may follow before `decode_stage2`."""
    fp32 = Fp32(word)
    significand, coarse, _ = normalise_partly(m, fp32.significand, name, _COARSE, None, None)
    return SimpleNamespace(
        significand=significand, coarse=coarse, field=fp32.exponent, sign=fp32.sign, zero=fp32.zero,
        infinite=fp32.infinite, nan=fp32.nan,
    )  # fmt: skip


def decode_stage2(m: Module, parts: SimpleNamespace, name: str) -> dict[str, Value]:
    """Finish the normalisation begun in `decode_stage1`. Registers may follow before `decode_stage3`."""
    significand, fine, _ = normalise_partly(m, parts.significand, name, _FINE, None, None)
    values = dict(vars(parts))
    coarse = values.pop("coarse")
    return values | {"significand": significand, "shift": Cat(fine, coarse)}


def decode_stage3(m: Module, parts: SimpleNamespace, name: str) -> Signal:
    """Compute the exponent; return the `Number` in a combinational signal called `name`."""
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
