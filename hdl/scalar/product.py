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
        cut = Pipeline(m, self.CUTS).cut
        tables = self.tables

        m.d.comb += tables.c3_c2_address.eq(self.index)
        given = cut(
            "factor", **self._factor(m), index=self.index, t=self.t, significand=self.significand, source=self.source,
            exp2=self.exp2, special=self.special,
        )  # fmt: skip

        c3, c2 = tables.c3_c2_row[: _WIDTHS["c3"]].as_signed(), tables.c3_c2_row[_WIDTHS["c3"] :].as_signed()
        m.d.comb += tables.c1_address.eq(given.index)
        linear = cut("linear", series=c2 + _over(given.t * c3, layout.LOCAL_BITS), **vars(given))

        m.d.comb += tables.c0_exponent_address.eq(linear.index)
        later = {name: value for name, value in vars(linear).items() if name not in ("series", "index")}
        series = tables.c1_row.as_signed() + _over(linear.t * linear.series, layout.LOCAL_BITS)
        quadratic = cut("quadratic", series=series, **later)

        polynomial, own_point = self._polynomial(m, quadratic)
        special, special_sign = self._alpha_results(m, quadratic)
        factors = cut(
            "polynomial", polynomial=polynomial, factor=quadratic.factor, sign=quadratic.sign,
            special_sign=special_sign, point=quadratic.point + own_point, turns=quadratic.turns, exp2=quadratic.exp2,
            special=special,
        )  # fmt: skip

        product, logarithm, total = Signal(_PRODUCT), Signal(SUM), Signal(SUM)
        m.d.comb += [
            product.eq(_over(factors.polynomial * factors.factor, layout.SUM_CUT)),
            logarithm.eq(factors.turns * layout.LN2),
        ]
        addends = cut(
            "product", product=product, logarithm=logarithm, sign=factors.sign, special_sign=factors.special_sign,
            point=factors.point, exp2=factors.exp2, special=factors.special,
        )  # fmt: skip

        m.d.comb += total.eq(Mux(addends.sign & ~addends.exp2, -addends.product, addends.product) + addends.logarithm)
        outputs = cut(
            "sum", total=total, point=addends.point, late_exp2=addends.exp2, late_sign=addends.special_sign,
            late_special=addends.special,
        )  # fmt: skip
        m.d.comb += [getattr(self, name).eq(value) for name, value in vars(outputs).items()]
        return m

    def _factor(self, m: Module) -> dict[str, Value]:
        """Step 6: the factor M, its sign, the part of X that does not depend on the polynomial, and k, the turns."""
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
        return {"factor": factor, "sign": sign, "point": point, "turns": turns}

    def _polynomial(self, m: Module, z) -> tuple[Value, Value]:
        """Return the polynomial, or what takes its place, and its part of X."""
        c0, exponent = self.tables.c0_exponent_row[: _WIDTHS["c0"]], self.tables.c0_exponent_row[_WIDTHS["c0"] :]
        polynomial, own_point = Signal(_POLYNOMIAL), Signal(POINT_EXPONENT)
        of_alpha = self.alpha.significand << _FROM_SIGNIFICAND
        with m.Switch(z.source):
            with m.Case(Source.Z):
                m.d.comb += polynomial.eq(z.significand << _FROM_SIGNIFICAND)
            with m.Case(Source.ALPHA):
                m.d.comb += [
                    polynomial.eq(Mux(self.alpha.sign, -of_alpha, of_alpha)),
                    own_point.eq(self.alpha.exponent),
                ]
            with m.Default():
                m.d.comb += [
                    polynomial.eq(c0.as_signed() + _over(z.t * z.series, _GUARDED)),
                    own_point.eq(exponent.as_signed()),
                ]
        return polynomial, own_point

    def _alpha_results(self, m: Module, z) -> tuple[Value, Value]:
        """Return what an alpha that is no ordinary number makes of the result: special, and its sign."""
        result = Signal(SpecialCode)
        special, by_alpha = z.special, z.source == Source.ALPHA
        m.d.comb += result.eq(special)
        with m.If(by_alpha):
            with m.If(self.alpha.nan):
                m.d.comb += result.eq(SpecialCode.NAN)
            with m.Elif(self.alpha.zero):
                m.d.comb += result.eq(Mux(special == SpecialCode.INFINITY, SpecialCode.NAN, SpecialCode.ZERO))
            with m.Elif(self.alpha.infinite):
                m.d.comb += result.eq(Mux(special == SpecialCode.ZERO, SpecialCode.NAN, SpecialCode.INFINITY))
        turned = by_alpha & (result != SpecialCode.NONE)
        return result, z.sign ^ (turned & self.alpha.sign)
