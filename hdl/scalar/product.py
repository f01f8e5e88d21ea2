"""Product stage of the activation datapath: polynomial, factor, their product, and the logarithm's addend.

Implements steps 5 to 7 of docs/activation.md, and the part of step 10 that depends on alpha.
"""

from types import SimpleNamespace

from amaranth import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.arith.multiply import halves_product, join_halves, plus
from neuroncore_rtl.hdl.arith.normalise import normalise_partly
from neuroncore_rtl.hdl.arith.pipeline import Pipeline
from neuroncore_rtl.hdl.scalar.argument import INDEX_BITS, REDUCED, SpecialCode
from neuroncore_rtl.hdl.scalar.number import EXPONENT, Number
from neuroncore_rtl.hdl.scalar.tables import Factor, Scale, Source, TableReader
from neuroncore_rtl.spec.formats import FP32
from neuroncore_rtl.spec.functions import layout

__all__ = ["LINEAR", "POINT_EXPONENT", "QUADRATIC", "SUM", "Product"]

SUM = signed(62)
"""Shape of the sum S."""

POINT_EXPONENT = signed(11)
"""Shape of X, the exponent of S."""

_WIDTHS = layout.COEFFICIENT_FIELDS
LINEAR, QUADRATIC, _POLYNOMIAL = signed(29), signed(34), signed(35)
"""Shapes of q2, q1 and P, as wide as the tables need."""
_PRODUCT = signed(60)
_GUARDED = layout.LOCAL_BITS + layout.COEFFICIENT_GUARD
_POINT = FP32.mantissa_bits
"""Fraction bits of the factor M."""
_HALF, _LINEAR_HALF, _QUADRATIC_HALF = 12, 14, 17
"""Widths of the lower halves in the staged products of t with c3, q2 and q1."""
_LOWER, _FACTOR_HALF = 17, layout.FACTOR_BITS // 2
"""Widths of the lower halves of P and M."""
_TURNS_BITS, _DIGIT = 8, 4
"""Bits of |k| (the multiple of ln 2 in a logarithm), and of a digit of it."""
_COARSE, _FINE = range(3, layout.REDUCED_ZEROS.bit_length()), range(3)
"""Bits of the shift amount that normalises the position in a quadrant: before and after a register."""
_FROM_SIGNIFICAND = layout.POINT - FP32.mantissa_bits
"""Left shift of z's significand where it replaces the polynomial."""


def _over(value: Value, places: int) -> Value:
    return value[places:].as_signed()


def _without(values: SimpleNamespace, *names: str) -> dict[str, Value]:
    return {name: value for name, value in vars(values).items() if name not in names}


class Product(wiring.Component):
    """Product stage: computes the integers S and X of the value S * 2**(X - 53). One per cycle.

    The outputs are registers, `latency` cycles later.

    Arguments:
        staged: give every step of the computation a separate pipeline stage.
        trigonometry: the factor may be the position in a quadrant.

    Ports:
        significand, exponent, index, t, reduced, source, factor, scale, exp2, sign, special: outputs of
            `hdl.scalar.argument.Argument`.
        alpha: parameter of the function, valid in the stage "polynomial".
        tables: reads c3_c2, c1, c0_exponent; other addresses stay 0.
        total: signed S if `late_exp2`, else the magnitude of S.
        point: X, the exponent of S.
        late_sign: sign of the result.
        late_exp2, late_special: the inputs `exp2` and `special`, in the cycle of `total`.
    """

    CUTS = {
        False: ("factor", "linear", "quadratic", "polynomial", "product", "sum"),
        True: (
            "factor", "linear_parts", "linear", "quadratic_parts", "quadratic", "polynomial_parts", "polynomial",
            "product_parts", "product", "sum",
        ),
    }  # fmt: skip
    """Cuts of the pipeline that hold a register, by `staged`."""

    significand: In(FP32.precision)
    exponent: In(EXPONENT)
    index: In(INDEX_BITS)
    t: In(layout.LOCAL_BITS)
    reduced: In(REDUCED)
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

    def __init__(self, staged: bool = False, trigonometry: bool = True):
        self.staged, self.trigonometry = staged, trigonometry
        self.latency = len(self.CUTS[staged])
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        cut = Pipeline(m, self.CUTS[self.staged]).cut
        tables, staged = self.tables, self.staged

        m.d.comb += tables.c3_c2_address.eq(self.index)
        z = cut(
            "factor", **self._before_factor(m), index=self.index, t=self.t, significand=self.significand,
            exponent=self.exponent, source=self.source, kind=self.factor, scale=self.scale, sign=self.sign,
            exp2=self.exp2, special=self.special,
        )  # fmt: skip

        c3, c2 = tables.c3_c2_row[: _WIDTHS["c3"]].as_signed(), tables.c3_c2_row[_WIDTHS["c3"] :].as_signed()
        if not staged:
            m.d.comb += tables.c1_address.eq(z.index)
        z = cut("linear_parts", **halves_product(z.t, c3, _HALF, staged), c2=c2, **self._factor(m, z))
        series = Signal(LINEAR)
        m.d.comb += series.eq(join_halves(z, _HALF, z.c2, layout.LOCAL_BITS))
        z = cut("linear", series=series, **_without(z, "whole", "low", "high", "cross", "c2"))

        parts = halves_product(z.t, z.series, _LINEAR_HALF, staged)
        m.d.comb += (tables.c1_address if staged else tables.c0_exponent_address).eq(z.index)
        z = cut("quadratic_parts", **parts, **_without(z, "series"))
        series = Signal(QUADRATIC)
        m.d.comb += series.eq(join_halves(z, _LINEAR_HALF, tables.c1_row.as_signed(), layout.LOCAL_BITS))
        if staged:
            m.d.comb += tables.c0_exponent_address.eq(z.index)
        z = cut("quadratic", series=series, **_without(z, "whole", "low", "high", "cross", "index"))

        z = cut("polynomial_parts", **self._last_term(z), **_without(z, "series", "t"))
        polynomial, own_point = self._polynomial(m, z)
        special, special_sign = self._alpha_results(m, z)
        z = cut(
            "polynomial", polynomial=polynomial, factor=z.factor, sign=z.sign ^ self._alpha_turns(z),
            special_sign=special_sign, point=z.point + own_point, turns=z.turns, exp2=z.exp2, special=special,
            flip=z.flip,
        )  # fmt: skip

        z = cut("product_parts", **self._products(m, z), **_without(z, "polynomial", "factor", "turns"))
        z = cut(
            "product", **self._add_products(m, z), sign=z.sign, flip=z.flip, special_sign=z.special_sign, point=z.point,
            exp2=z.exp2, special=z.special,
        )  # fmt: skip
        total, sign = self._total(m, z)
        outputs = cut(
            "sum", total=total, point=z.point, late_exp2=z.exp2, late_sign=sign, late_special=z.special,
        )  # fmt: skip
        m.d.comb += [getattr(self, name).eq(value) for name, value in vars(outputs).items()]
        return m

    def _before_factor(self, m: Module) -> dict[str, Value]:
        if not self.trigonometry:
            return {}
        normal, zeros, _ = normalise_partly(m, self.reduced, "reduced", _COARSE, None, None)
        return {"normal": normal, "zeros": zeros}

    def _factor(self, m: Module, z) -> dict[str, Value]:
        """Step 6: compute the factor M, its sign, and the controls of the sum.

        Among the results, `point` is the part of X that is independent of the polynomial, and `turns` is |k|. With
        `flip` the product is subtracted from |k| ln 2.
        """
        factor, sign, flip = Signal(layout.FACTOR_BITS), Signal(), Signal()
        own_point, scaling, point = (Signal(POINT_EXPONENT) for _ in range(3))
        k, turns = Signal(signed(len(z.exponent) + 1)), Signal(_TURNS_BITS)
        upper, below = Signal(), Signal()
        m.d.comb += [
            sign.eq(z.sign),
            # The significand is 1.5 or more.
            upper.eq(z.significand[-2]),
            k.eq(z.exponent + upper),
            below.eq(k < 0),
        ]
        with m.Switch(z.kind):
            with m.Case(Factor.ONE):
                m.d.comb += factor.eq(1 << _POINT)
            with m.Case(Factor.Z):
                m.d.comb += [factor.eq(z.significand), own_point.eq(z.exponent)]
            with m.Case(Factor.LOG):
                m.d.comb += [
                    factor.eq(Mux(upper, (1 << FP32.precision) - z.significand, Cat(Const(0, 1), z.significand[:-1]))),
                    own_point.eq(-1),
                    sign.eq(Mux(k.any(), below, upper)),
                    flip.eq(k.any() & (upper ^ below)),
                    turns.eq(Mux(below, -k, k)),
                ]
            with m.Case(Factor.REDUCED):
                if self.trigonometry:
                    normal, fine, _ = normalise_partly(m, z.normal, "reduced", _FINE, None, None)
                    m.d.comb += [
                        factor.eq(normal[-layout.FACTOR_BITS :]),
                        own_point.eq(-(layout.FACTOR_BITS - _POINT) - Cat(fine, z.zeros)),
                    ]
        half = z.exponent >> 1
        with m.Switch(z.scale):
            with m.Case(Scale.NONE):
                pass
            with m.Case(Scale.RECIPROCAL):
                m.d.comb += scaling.eq(-z.exponent)
            with m.Case(Scale.ROOT):
                m.d.comb += scaling.eq(half)
            with m.Case(Scale.INVERSE_ROOT):
                m.d.comb += scaling.eq(-half)
        m.d.comb += point.eq(plus(own_point, scaling) + Mux(z.source == Source.Z, z.exponent, 0))
        return {
            "factor": factor, "sign": sign, "point": point, "turns": turns, "flip": flip, "index": z.index, "t": z.t,
            "significand": z.significand, "source": z.source, "exp2": z.exp2, "special": z.special,
        }  # fmt: skip

    def _last_term(self, z) -> dict[str, Value]:
        c0 = self.tables.c0_exponent_row[: _WIDTHS["c0"]].as_signed()
        exponent = self.tables.c0_exponent_row[_WIDTHS["c0"] :].as_signed()
        if not self.staged:
            return {"whole": z.t * z.series, "c0": c0, "own_exponent": exponent}
        # An unsigned factor has narrower halves: add 2**33 to the factor, and subtract t * 2**33 from c0.
        raised = Cat(z.series[:-1], ~z.series[-1])
        parts = halves_product(z.t, raised, _QUADRATIC_HALF)
        return parts | {"c0": c0 - (z.t << QUADRATIC.width - 1 - _GUARDED), "own_exponent": exponent}

    def _polynomial(self, m: Module, z) -> tuple[Value, Value]:
        polynomial, own_point = Signal(_POLYNOMIAL), Signal(POINT_EXPONENT)
        with m.Switch(z.source):
            with m.Case(Source.Z):
                m.d.comb += polynomial.eq(z.significand << _FROM_SIGNIFICAND)
            with m.Case(Source.ALPHA):
                m.d.comb += [
                    polynomial.eq(self.alpha.significand << _FROM_SIGNIFICAND),
                    own_point.eq(self.alpha.exponent),
                ]
            with m.Default():
                m.d.comb += [
                    polynomial.eq(join_halves(z, _QUADRATIC_HALF, z.c0, _GUARDED)),
                    own_point.eq(z.own_exponent),
                ]
        return polynomial, own_point

    def _alpha_turns(self, z) -> Value:
        """Return whether a negative alpha inverts the sign of the result.

        The product itself uses only alpha's significand.
        """
        return (z.source == Source.ALPHA) & self.alpha.sign

    def _products(self, m: Module, z) -> dict[str, Value]:
        if not self.staged:
            return {"product": z.polynomial * z.factor, "logarithm": z.turns * layout.LN2}
        low, high = z.polynomial[:_LOWER], z.polynomial[_LOWER:].as_signed()
        values = {}
        for number, part in enumerate((z.factor[:_FACTOR_HALF], z.factor[_FACTOR_HALF:])):
            values |= {f"low{number}": low * part, f"high{number}": high * part}
        # Four bits of |k| select a multiple of ln 2: one LUT per bit, no multiplier.
        for number in range(2):
            multiple = Signal(len(Const(layout.LN2)) + _DIGIT, name=f"multiple{number}")
            with m.Switch(z.turns.word_select(number, _DIGIT)):
                for digit in range(1 << _DIGIT):
                    with m.Case(digit):
                        m.d.comb += multiple.eq(digit * layout.LN2)
            values[f"multiple{number}"] = multiple
        return values

    def _add_products(self, m: Module, z) -> dict[str, Value]:
        product, logarithm = Signal(_PRODUCT), Signal(SUM)
        if self.staged:
            lower = plus(z.low0, z.low1 << _FACTOR_HALF)
            upper = plus(z.high0, z.high1 << _FACTOR_HALF)
            whole = plus(lower, upper << _LOWER)
            m.d.comb += logarithm.eq(z.multiple0 + (z.multiple1 << _DIGIT))
        else:
            whole = z.product
            m.d.comb += logarithm.eq(z.logarithm)
        m.d.comb += product.eq(_over(whole, layout.SUM_CUT))
        return {"product": product, "logarithm": logarithm}

    def _total(self, m: Module, z) -> tuple[Value, Value]:
        """Return S, or its magnitude, and the sign of the result.

        The logarithm's polynomial is in [0, ln 2), so S has the sign of k if k is not 0.
        """
        minus, total = Signal(), Signal(SUM)
        negative = z.product[-1]
        plain = ~z.exp2 & (z.special == SpecialCode.NONE)
        m.d.comb += [
            minus.eq(~z.exp2 & (z.flip | negative)),
            # An additional lowest bit carries `minus` into the sum.
            total.eq((Cat(minus, z.logarithm) + Cat(minus, z.product ^ minus.replicate(SUM.width)))[1:]),
        ]
        return total, Mux(plain, z.sign ^ negative, z.special_sign)

    def _alpha_results(self, m: Module, z) -> tuple[Value, Value]:
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
