"""The second part of the activation datapath: the polynomial, the factor, their product and the logarithm's addend.

Steps 5 to 7 of docs/activation.md, and of step 10 what depends on alpha.
"""

from amaranth import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.arith.normalise import normalise
from neuroncore_rtl.hdl.arith.pipeline import Pipeline
from neuroncore_rtl.hdl.scalar.argument import INDEX_BITS, SpecialCode
from neuroncore_rtl.hdl.scalar.number import EXPONENT, Number
from neuroncore_rtl.hdl.scalar.tables import Factor, Scale, Source, TableReader
from neuroncore_rtl.spec.formats import FP32
from neuroncore_rtl.spec.functions import layout

__all__ = ["POINT_EXPONENT", "SUM", "Product"]

SUM = signed(62)
"""Shape of the sum S."""

POINT_EXPONENT = signed(11)
"""Shape of its exponent X."""

_WIDTHS = layout.COEFFICIENT_FIELDS
_POLYNOMIAL = signed(35)
_PRODUCT = signed(60)
_GUARDED = layout.LOCAL_BITS + layout.COEFFICIENT_GUARD
_POINT = FP32.mantissa_bits
"""Fraction bits of the factor."""
_FROM_SIGNIFICAND = layout.POINT - FP32.mantissa_bits
"""A significand that takes the polynomial's place is shifted by so much."""


def _over(value: Value, places: int) -> Value:
    """Return a signed value without its lowest bits, rounded toward minus infinity."""
    return value[places:].as_signed()


class Product(wiring.Component):
    """S, worth S * 2**(X - 53), of what :class:`hdl.scalar.argument.Argument` puts out. One enters per cycle.

    Ports:
        significand, exponent, index, t, reduced, source, factor, scale, exp2, sign, special: see there.
        alpha: given `ALPHA_DELAY` cycles after the others.
        tables: read here: c3_c2, c1, c0_exponent; the other addresses stay 0.
        total, point: S and X, registers, `LATENCY` cycles later; late_*: the others by then.
    """

    CUTS = ("factor", "linear", "quadratic", "polynomial", "product", "sum")
    LATENCY = len(CUTS)
    ALPHA_DELAY = CUTS.index("polynomial")

    significand: In(FP32.precision)
    exponent: In(EXPONENT)
    index: In(INDEX_BITS)
    t: In(layout.LOCAL_BITS)
    reduced: In(layout.REDUCED_BITS)
    source: In(Source)
    factor: In(Factor)
    scale: In(Scale)
    exp2: In(1)
    sign: In(1)
    special: In(SpecialCode)
    alpha: In(Number)
    tables: Out(TableReader())
    total: Out(SUM)
    point: Out(POINT_EXPONENT)
    late_exp2: Out(1)
    late_sign: Out(1)
    late_special: Out(SpecialCode)

    def elaborate(self, platform):
        m = Module()
        pipeline = Pipeline(m, self.CUTS)
        tables = self.tables

        m.d.comb += tables.c3_c2_address.eq(self.index)
        factor, sign, point, turns = self._factor(m)
        factor, sign, point, turns, index, t, significand, source, exp2, special = pipeline.cut(
            "factor", factor=factor, sign=sign, point=point, turns=turns, index=self.index, t=self.t,
            significand=self.significand, source=self.source, exp2=self.exp2, special=self.special,
        )  # fmt: skip

        c3, c2 = tables.c3_c2_row[: _WIDTHS["c3"]].as_signed(), tables.c3_c2_row[_WIDTHS["c3"] :].as_signed()
        m.d.comb += tables.c1_address.eq(index)
        series, factor, sign, point, turns, index, t, significand, source, exp2, special = pipeline.cut(
            "linear", series=c2 + _over(t * c3, layout.LOCAL_BITS), factor=factor, sign=sign, point=point, turns=turns,
            index=index, t=t, significand=significand, source=source, exp2=exp2, special=special,
        )  # fmt: skip

        m.d.comb += tables.c0_exponent_address.eq(index)
        series, factor, sign, point, turns, t, significand, source, exp2, special = pipeline.cut(
            "quadratic", series=tables.c1_row.as_signed() + _over(t * series, layout.LOCAL_BITS), factor=factor,
            sign=sign, point=point, turns=turns, t=t, significand=significand, source=source, exp2=exp2,
            special=special,
        )  # fmt: skip

        c0, exponent = tables.c0_exponent_row[: _WIDTHS["c0"]], tables.c0_exponent_row[_WIDTHS["c0"] :]
        polynomial, own_point = Signal(_POLYNOMIAL), Signal(POINT_EXPONENT)
        of_alpha = self.alpha.significand << _FROM_SIGNIFICAND
        with m.Switch(source):
            with m.Case(Source.Z):
                m.d.comb += polynomial.eq(significand << _FROM_SIGNIFICAND)
            with m.Case(Source.ALPHA):
                m.d.comb += [
                    polynomial.eq(Mux(self.alpha.sign, -of_alpha, of_alpha)),
                    own_point.eq(self.alpha.exponent),
                ]
            with m.Default():
                m.d.comb += [
                    polynomial.eq(c0.as_signed() + _over(t * series, _GUARDED)),
                    own_point.eq(exponent.as_signed()),
                ]
        special, special_sign = self._alpha_results(m, source, special, sign)
        polynomial, factor, sign, special_sign, point, turns, exp2, special = pipeline.cut(
            "polynomial", polynomial=polynomial, factor=factor, sign=sign, special_sign=special_sign,
            point=point + own_point, turns=turns, exp2=exp2, special=special,
        )  # fmt: skip

        product, logarithm = Signal(_PRODUCT), Signal(SUM)
        m.d.comb += [
            product.eq(_over(polynomial * factor, layout.SUM_CUT)),
            logarithm.eq(turns * layout.LN2),
        ]
        product, logarithm, sign, special_sign, point, exp2, special = pipeline.cut(
            "product", product=product, logarithm=logarithm, sign=sign, special_sign=special_sign, point=point,
            exp2=exp2, special=special,
        )  # fmt: skip

        total = Signal(SUM)
        m.d.comb += total.eq(Mux(sign & ~exp2, -product, product) + logarithm)
        ports = (self.total, self.point, self.late_exp2, self.late_sign, self.late_special)
        outputs = pipeline.cut("sum", total=total, point=point, exp2=exp2, sign=special_sign, special=special)
        m.d.comb += [port.eq(value) for port, value in zip(ports, outputs, strict=True)]
        return m

    def _factor(self, m):
        """Step 6: the factor M, its sign, the part of X that does not depend on the polynomial, and k."""
        factor, sign = Signal(layout.FACTOR_BITS), Signal()
        own_point, scaling, point = (Signal(POINT_EXPONENT) for _ in range(3))
        turns = Signal(signed(len(self.exponent) + 1))
        upper = Signal()
        normal, zeros = normalise(m, self.reduced, "reduced")
        m.d.comb += [
            sign.eq(self.sign),
            # The significand's second bit: 1.5 or above.
            upper.eq(self.significand[-2]),
        ]
        with m.Switch(self.factor):
            with m.Case(Factor.ONE):
                m.d.comb += factor.eq(1 << _POINT)
            with m.Case(Factor.Z):
                m.d.comb += [factor.eq(self.significand), own_point.eq(self.exponent)]
            with m.Case(Factor.LOG):
                m.d.comb += [
                    factor.eq(
                        Mux(upper, (1 << FP32.precision) - self.significand, Cat(Const(0, 1), self.significand[:-1]))
                    ),
                    own_point.eq(-1),
                    sign.eq(upper),
                    turns.eq(self.exponent + upper),
                ]
            with m.Case(Factor.REDUCED):
                m.d.comb += [
                    factor.eq(normal[-layout.FACTOR_BITS :]),
                    own_point.eq(-(layout.FACTOR_BITS - _POINT) - zeros),
                ]
        half = self.exponent >> 1
        with m.Switch(self.scale):
            with m.Case(Scale.NONE):
                pass
            with m.Case(Scale.RECIPROCAL):
                m.d.comb += scaling.eq(-self.exponent)
            with m.Case(Scale.ROOT):
                m.d.comb += scaling.eq(half)
            with m.Case(Scale.INVERSE_ROOT):
                m.d.comb += scaling.eq(-half)
        m.d.comb += point.eq(own_point + scaling + Mux(self.source == Source.Z, self.exponent, 0))
        return factor, sign, point, turns

    def _alpha_results(self, m, source, special, sign):
        """What an alpha that is no ordinary number makes of the result: special, and its sign."""
        result = Signal(SpecialCode)
        special = SpecialCode(special)
        m.d.comb += result.eq(special)
        with m.If(source == Source.ALPHA):
            with m.If(self.alpha.nan):
                m.d.comb += result.eq(SpecialCode.NAN)
            with m.Elif(self.alpha.zero):
                m.d.comb += result.eq(Mux(special == SpecialCode.INFINITY, SpecialCode.NAN, SpecialCode.ZERO))
            with m.Elif(self.alpha.infinite):
                m.d.comb += result.eq(Mux(special == SpecialCode.ZERO, SpecialCode.NAN, SpecialCode.INFINITY))
        turned = (source == Source.ALPHA) & (result != SpecialCode.NONE)
        return result, sign ^ (turned & self.alpha.sign)
