"""Widening of a storage word of any format to FP32, and of an integer to 32 bits.

Formats with FP32's exponent width are only padded. All others become a magnitude of up to 32 bits: an integer's, or a
float's significand at the top. One normalising shift turns it into FP32, subnormal or not. Only a 32-bit integer needs
rounding.
"""

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.arith.formats import FormatCode
from neuroncore_rtl.hdl.arith.normalise import normalise
from neuroncore_rtl.hdl.arith.pipeline import Pipeline
from neuroncore_rtl.spec.formats import FORMATS, FP32, FloatFormat, IntFormat

__all__ = ["Widen"]

_WIDTH = 32
_DROPPED = _WIDTH - FP32.precision
_FIELD_BITS = FP32.exponent_bits


class Widen(wiring.Component):
    """Storage word to FP32 and to an integer. Throughput: one word per cycle.

    Arguments:
        latency: cycles from word to the results, 0 to 2, combinational after the last register.

    Ports:
        word: the element, right-aligned; higher bits are ignored.
        dtype: format of the element, any of `spec.formats`.
        odd: with word; round a 32-bit integer to odd (truncate it, and set the last bit if that is inexact), so that a
            later rounding to a narrower format equals one rounding of the integer.
        fp32: FP32 word of the value, exact, except that 32-bit integers are rounded to nearest even. Subnormals are
            kept; those of FP16 and FP8 become normal. NaN becomes canonical, in FP32 too. TF32's 13 padding bits are
            ignored, except that a set one distinguishes NaN from infinity.
        integer: value of an integer format, as UINT32 for UINT32, else INT32; 0 for floats.
    """

    CUTS = {0: (), 1: ("normalise",), 2: ("magnitude", "normalise")}
    """Cuts of the pipeline that hold a register, by `latency`."""

    word: In(32)
    dtype: In(FormatCode)
    odd: In(1)
    fp32: Out(32)
    integer: Out(32)

    def __init__(self, latency: int = 0):
        if latency not in self.CUTS:
            raise ValueError(f"latency must be 0 to {max(self.CUTS)}, not {latency!r}")
        self.latency = latency
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        cut = Pipeline(m, self.CUTS[self.latency]).cut
        parts = cut("magnitude", **self._parts(m))
        normal, shift = normalise(m, parts.magnitude, "magnitude")
        del parts.magnitude
        number = cut("normalise", normal=normal, shift=shift, **vars(parts))
        m.d.comb += [self.fp32.eq(self._rounded(m, number)), self.integer.eq(number.integer)]
        return m

    def _parts(self, m: Module) -> dict[str, Value]:
        """Decode the word to a sign and magnitude, or to the fields of an FP32 number, and to its integer value."""
        integer = Signal(32)
        sign = Signal()
        inf = Signal()
        nan = Signal()
        whole, wide = Signal(), Signal()
        filled = Signal(31)
        narrow, magnitude = Signal(_WIDTH), Signal(_WIDTH)
        top_field = Signal(_FIELD_BITS)
        with m.Switch(self.dtype):
            for fmt in FORMATS.values():
                with m.Case(FormatCode(fmt.code)):
                    if isinstance(fmt, IntFormat):
                        negative = self.word[fmt.bits - 1] if fmt.signed else Const(0, 1)
                        extended = Cat(self.word[: fmt.bits], negative.replicate(_WIDTH - fmt.bits))
                        m.d.comb += [
                            whole.eq(1),
                            integer.eq(extended),
                            sign.eq(negative),
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
                        m.d.comb += self._narrow(fmt, narrow, top_field)

        m.d.comb += magnitude.eq(Mux(whole, Mux(sign, -integer, integer), narrow))
        return {
            "magnitude": magnitude, "top_field": top_field, "sign": sign, "inf": inf, "nan": nan, "wide": wide,
            "filled": filled, "integer": integer, "odd": self.odd,
        }  # fmt: skip

    def _rounded(self, m: Module, number) -> Signal:
        """Return the FP32 word of the number, with a 32-bit integer rounded."""
        normal = number.normal
        up, last = Signal(), Signal()
        rounded, finite = Signal(31), Signal(31)
        special, word = Signal(), Signal(32)
        field = Mux(normal[-1], number.top_field - number.shift, 0)[:_FIELD_BITS]
        m.d.comb += [
            up.eq(normal[_DROPPED - 1] & (normal[: _DROPPED - 1].any() | normal[_DROPPED]) & ~number.odd),
            last.eq(normal[_DROPPED] | (normal[:_DROPPED].any() & number.odd)),
            rounded.eq(Cat(last, normal[_DROPPED + 1 : -1], field) + up),
            special.eq(number.inf | number.nan),
            finite.eq(Mux(number.wide, number.filled, rounded)),
            word[: FP32.mantissa_bits].eq(Mux(special, Cat(Const(0, FP32.mantissa_bits - 1), number.nan), finite)),
            word[FP32.mantissa_bits : 31].eq(Mux(special, -1, finite[FP32.mantissa_bits :])),
            word[31].eq(number.sign & ~number.nan),
        ]
        return word

    def _narrow(self, fmt: FloatFormat, magnitude: Signal, top_field: Signal):
        """Return the assignments that decode a float with fewer exponent bits than FP32 to a magnitude and field."""
        field = self.word[fmt.mantissa_bits : fmt.bits - 1]
        mantissa = self.word[: fmt.mantissa_bits]
        return [
            magnitude.eq(Cat(Const(0, _WIDTH - fmt.precision), mantissa, field.any())),
            # Subnormals have the exponent of field 1.
            top_field.eq(Cat(field[0] | ~field.any(), field[1:]) + (FP32.bias - fmt.bias)),
        ]
