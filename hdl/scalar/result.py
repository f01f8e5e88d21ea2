"""The last part of the activation datapath: the power of two, the rounding, and the results that are none of its own.

Steps 8 to 10 of docs/activation.md.
"""

from amaranth import Cat, Const, Module, Mux, Signal, signed
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
        pipeline = Pipeline(m, self.CUTS)
        tables = self.tables

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
        logarithm, magnitude, point, exp2, sign, special = pipeline.cut(
            "power", logarithm=logarithm, magnitude=magnitude, point=self.point, exp2=self.exp2, sign=sign,
            special=self.special,
        )  # fmt: skip

        index, t = logarithm[layout.LOCAL_BITS : _FRACTION_BITS], logarithm[: layout.LOCAL_BITS]
        whole = logarithm[_FRACTION_BITS:].as_signed()
        m.d.comb += tables.exp2_c2_c1_address.eq(index)
        normal, zeros = normalise(m, magnitude, "magnitude")
        field, power_field = Signal(POINT_EXPONENT), Signal(POINT_EXPONENT)
        m.d.comb += [
            # Of a zero the field is below all that round to something else.
            field.eq(Mux(normal[-1], point + (_MAGNITUDE_BITS - 1 - layout.SUM_POINT + FP32.bias) - zeros, -512)),
            power_field.eq(whole + FP32.bias),
        ]
        significand, sticky, field, t, index, exp2, sign, special = pipeline.cut(
            "linear", significand=normal[-_KEPT:], sticky=normal[:-_KEPT].any(), field=Mux(exp2, power_field, field),
            t=t, index=index, exp2=exp2, sign=sign, special=special,
        )  # fmt: skip

        c2 = tables.exp2_c2_c1_row[: layout.EXP2_FIELDS["c2"]]
        c1 = tables.exp2_c2_c1_row[layout.EXP2_FIELDS["c2"] :]
        m.d.comb += tables.exp2_c0_address.eq(index)
        series, significand, sticky, field, t, exp2, sign, special = pipeline.cut(
            "quadratic", series=c1 + (t * c2)[layout.LOCAL_BITS :], significand=significand, sticky=sticky,
            field=field, t=t, exp2=exp2, sign=sign, special=special,
        )  # fmt: skip

        power = Signal(_KEPT + 1)
        m.d.comb += power.eq(tables.exp2_c0_row + (t * series)[_GUARDED:])
        significand, sticky, field, sign, special = pipeline.cut(
            "round", significand=Mux(exp2, power[1:], significand), sticky=Mux(exp2, power[0], sticky), field=field,
            sign=sign, special=special,
        )  # fmt: skip

        rounded = pack_fp32(m, significand, field, sticky)
        word = Signal(32)
        with m.Switch(special):
            for entry in layout.Special:
                if entry.word is not None and entry is not layout.Special.NAN:
                    with m.Case(entry.value):
                        m.d.comb += word.eq(Cat(Const(entry.word, 31), sign))
            with m.Case(layout.Special.NAN.value):
                m.d.comb += word.eq(FP32.nan)
            with m.Default():
                m.d.comb += word.eq(Cat(rounded, sign))
        m.d.comb += self.out.eq(*pipeline.cut("out", word=word))
        return m
