"""The last part of the activation datapath: the power of two, the rounding, and the results that are none of its own.

Steps 8 to 10 of docs/activation.md.
"""

from amaranth import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.arith.normalise import normalise
from neuroncore_rtl.hdl.arith.pack import pack_fp32
from neuroncore_rtl.hdl.arith.pipeline import Pipeline
from neuroncore_rtl.hdl.scalar.argument import SpecialCode
from neuroncore_rtl.hdl.scalar.product import POINT_EXPONENT, SUM
from neuroncore_rtl.hdl.scalar.tables import TableReader
from neuroncore_rtl.spec.formats import FP32
from neuroncore_rtl.spec.functions import layout

__all__ = ["Result"]

_LOG_BITS = 41
"""Width of U."""
_FRACTION_BITS = layout.EXP2_INDEX_BITS + layout.LOCAL_BITS
_LOG_POINT = layout.SUM_POINT - _FRACTION_BITS
_FARTHEST = 63
_MAGNITUDE_BITS = SUM.width - 1
_KEPT = layout.POINT
"""Bits of a significand that is rounded; what is below them is one sticky bit."""
_GUARDED = layout.LOCAL_BITS + layout.COEFFICIENT_GUARD


class Result(wiring.Component):
    """FP32 of S * 2**(X - 53), or of 2 to its power. One enters per cycle.

    Ports:
        total, point: S and X. exp2: whether the result is 2 to their power.
        sign: of the result, where S does not tell. special: what the result is instead.
        tables: read here: exp2_c2_c1, exp2_c0; the other addresses stay 0.
        out: FP32 storage word, a register, `LATENCY` cycles later.
    """

    CUTS = ("power", "linear", "quadratic", "round", "out")
    LATENCY = len(CUTS)

    total: In(SUM)
    point: In(POINT_EXPONENT)
    exp2: In(1)
    sign: In(1)
    special: In(SpecialCode)
    tables: Out(TableReader())
    out: Out(32)

    def elaborate(self, platform):
        m = Module()
        cut = Pipeline(m, self.CUTS).cut
        total = cut("power", **self._part(m))
        linear = cut("linear", **self._fields(m, total))

        c2 = self.tables.exp2_c2_c1_row[: layout.EXP2_FIELDS["c2"]]
        c1 = self.tables.exp2_c2_c1_row[layout.EXP2_FIELDS["c2"] :]
        m.d.comb += self.tables.exp2_c0_address.eq(linear.index)
        quadratic = cut(
            "quadratic", series=c1 + (linear.t * c2)[layout.LOCAL_BITS :], significand=linear.significand,
            sticky=linear.sticky, field=linear.field, t=linear.t, exp2=linear.exp2, sign=linear.sign,
            special=linear.special,
        )  # fmt: skip

        power, exp2 = Signal(_KEPT + 1), quadratic.exp2
        m.d.comb += power.eq(self.tables.exp2_c0_row + (quadratic.t * quadratic.series)[_GUARDED:])
        number = cut(
            "round", significand=Mux(exp2, power[1:], quadratic.significand),
            sticky=Mux(exp2, power[0], quadratic.sticky), field=quadratic.field, sign=quadratic.sign,
            special=quadratic.special,
        )  # fmt: skip
        m.d.comb += self.out.eq(cut("out", word=self._word(m, number)).word)
        return m

    def _part(self, m: Module) -> dict[str, Value]:
        """S * 2**X as a logarithm with its point where it belongs, and as sign and magnitude."""
        places = Signal(POINT_EXPONENT)
        shift = Signal(range(_FARTHEST + 1))
        logarithm = Signal(signed(_LOG_BITS))
        magnitude = Signal(_MAGNITUDE_BITS)
        negative = self.total[-1]
        m.d.comb += [
            places.eq(_LOG_POINT - self.point),
            shift.eq(Mux(places > _FARTHEST, _FARTHEST, places)),
            logarithm.eq(self.total >> shift),
            magnitude.eq(Mux(negative, -self.total, self.total)),
        ]
        sign = Mux(self.exp2 | ~self.total.any() | (self.special != SpecialCode.NONE), self.sign, negative)
        return {
            "logarithm": logarithm, "magnitude": magnitude, "point": self.point, "exp2": self.exp2, "sign": sign,
            "special": self.special,
        }  # fmt: skip

    def _fields(self, m: Module, total) -> dict[str, Value]:
        """Significand and exponent field, the latter of the power of two if it is that; its segment, and the place."""
        logarithm = total.logarithm
        index, t = logarithm[layout.LOCAL_BITS : _FRACTION_BITS], logarithm[: layout.LOCAL_BITS]
        whole = logarithm[_FRACTION_BITS:].as_signed()
        m.d.comb += self.tables.exp2_c2_c1_address.eq(index)
        normal, zeros = normalise(m, total.magnitude, "magnitude")
        field, power_field = Signal(POINT_EXPONENT), Signal(POINT_EXPONENT)
        top = _MAGNITUDE_BITS - 1 - layout.SUM_POINT + FP32.bias
        m.d.comb += [
            # Of a zero the field is below all that round to something else.
            field.eq(Mux(normal[-1], total.point + top - zeros, -512)),
            power_field.eq(whole + FP32.bias),
        ]
        return {
            "significand": normal[-_KEPT:], "sticky": normal[:-_KEPT].any(),
            "field": Mux(total.exp2, power_field, field), "t": t, "index": index, "exp2": total.exp2,
            "sign": total.sign, "special": total.special,
        }  # fmt: skip

    def _word(self, m: Module, number) -> Signal:
        """Return the storage word."""
        rounded = pack_fp32(m, number.significand, number.field, number.sticky)
        word = Signal(32)
        with m.Switch(number.special):
            for entry in layout.Special:
                if entry.word is not None and entry is not layout.Special.NAN:
                    with m.Case(SpecialCode(entry.value)):
                        m.d.comb += word.eq(Cat(Const(entry.word, 31), number.sign))
            with m.Case(SpecialCode.NAN):
                m.d.comb += word.eq(FP32.nan)
            with m.Default():
                m.d.comb += word.eq(Cat(rounded, number.sign))
        return word
