"""A storage word of any format becomes FP32, and an integer a word of 32 bits.

The formats that share the exponent of FP32 need no arithmetic: their words are filled up. The others are a magnitude
of up to 32 bits: an integer's, or a float's significand put at the top. One normalising shift makes a number of FP32
of it, subnormal or not, and only an integer of 32 bits has bits left to round.
"""

from amaranth import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.arith.formats import FormatCode
from neuroncore_rtl.hdl.arith.normalise import normalise
from neuroncore_rtl.spec.formats import FORMATS, FP32, FloatFormat, IntFormat

__all__ = ["Widen"]

_WIDTH = 32
_DROPPED = _WIDTH - FP32.precision
_FIELD_BITS = FP32.exponent_bits


class Widen(wiring.Component):
    """Storage word to FP32 and to an integer; combinational (latency 0, the caller registers the result).

    Ports:
        word: the element, right-aligned; of a format of fewer than 32 bits the upper bits are ignored.
        dtype: its format, any of `spec.formats`.
        fp32: FP32 storage word of the value, exact; of 32 bits rounded to nearest even. Subnormals are kept, those of
            FP16 and FP8 become normal numbers. NaN becomes the canonical NaN, also one of FP32. TF32 ignores its 13
            padding bits, but a set one tells a NaN from an infinity.
        integer: the value of an integer format: UINT32, or the others as INT32; 0 for floats.
    """

    word: In(32)
    dtype: In(FormatCode)
    fp32: Out(32)
    integer: Out(32)

    latency = 0

    def elaborate(self, platform):
        m = Module()
        sign = Signal()
        inf = Signal()
        nan = Signal()
        wide = Signal()
        filled = Signal(31)
        magnitude = Signal(_WIDTH)
        top_field = Signal(_FIELD_BITS)
        with m.Switch(self.dtype):
            for fmt in FORMATS.values():
                with m.Case(FormatCode(fmt.code)):
                    if isinstance(fmt, IntFormat):
                        negative = self.word[fmt.bits - 1] if fmt.signed else Const(0, 1)
                        extended = Cat(self.word[: fmt.bits], negative.replicate(_WIDTH - fmt.bits))
                        m.d.comb += [
                            self.integer.eq(extended),
                            sign.eq(negative),
                            magnitude.eq(Mux(negative, -extended, extended)),
                            top_field.eq(FP32.bias + _WIDTH - 1),
                        ]
                        continue
                    below = self.word[: fmt.bits - 1]
                    mantissa_end = fmt.padding_bits + fmt.mantissa_bits
                    field = self.word[mantissa_end : fmt.bits - 1]
                    payload = self.word[:mantissa_end].any()
                    m.d.comb += [
                        sign.eq(self.word[fmt.bits - 1]),
                        inf.eq(field.all() & ~payload),
                        nan.eq(field.all() & payload),
                    ]
                    if fmt.exponent_bits == _FIELD_BITS:
                        m.d.comb += [
                            wide.eq(1),
                            filled.eq(Cat(Const(0, 31 - len(below) + fmt.padding_bits), below[fmt.padding_bits :])),
                        ]
                    else:
                        m.d.comb += self._narrow(fmt, magnitude, top_field)

        normal, shift = normalise(m, magnitude, "magnitude")
        up = Signal()
        rounded = Signal(31)
        with_sign = Signal(32)
        m.d.comb += [
            up.eq(normal[_DROPPED - 1] & (normal[: _DROPPED - 1].any() | normal[_DROPPED])),
            rounded.eq(Cat(normal[_DROPPED:-1], Mux(normal[-1], top_field - shift, 0)[:_FIELD_BITS]) + up),
            with_sign.eq(Cat(Mux(wide, filled, Mux(inf, FP32.infinity, rounded))[:31], sign)),
            self.fp32.eq(Mux(nan, FP32.nan, with_sign)),
        ]
        return m

    def _narrow(self, fmt: FloatFormat, magnitude: Signal, top_field: Signal):
        """A float of fewer exponent bits than FP32 has, as a magnitude."""
        field = self.word[fmt.mantissa_bits : fmt.bits - 1]
        mantissa = self.word[: fmt.mantissa_bits]
        return [
            magnitude.eq(Cat(Const(0, _WIDTH - fmt.precision), mantissa, field.any())),
            # Subnormals share the exponent of field 1.
            top_field.eq(Cat(field[0] | ~field.any(), field[1:]) + (FP32.bias - fmt.bias)),
        ]
