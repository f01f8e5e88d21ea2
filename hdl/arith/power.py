"""The FP32 power a ** b = 2 ** (b * log2(a)), by tables and polynomials on one multiplier of 27 by 34 bits.

One multiplication a cycle, all in fixed point, every shift to the right toward minus infinity. The tables and
coefficients are those of `spec/power.py`; there is how the logarithm and the power of two are taken apart.

    step   multiplicand x      multiplier              makes
    1      significand of a    reciprocal of its row   r
    2-5    r                   coefficient, sums       the polynomial of the logarithm, without its leading part
    6      r                   the polynomial          log2(a), 47 fraction bits; 60 next to a = 1, where it is small
    7, 8   significand of b    the logarithm, halved   their product
    9                                                  the product as integer and fraction, in 32 fraction bits
    10-12  fraction in row     coefficient, sums       2 ** fraction in row, less 1
    13     that                its row                 the significand, 32 fraction bits
    14                                                 out

The logarithm is within 2**-35 of itself however small it is, so the result, whose own logarithm is below 150, is
within 0.05 ulp before it is rounded, wherever in the domain.
"""

from amaranth import C, Cat, Module, Mux, Signal, signed
from amaranth.lib import enum, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.arith.normalise import normalise
from neuroncore_rtl.hdl.arith.pack import pack_fp32
from neuroncore_rtl.spec import power
from neuroncore_rtl.spec.formats import FP32

__all__ = ["Fp32Power"]

_FRACTION_BITS = FP32.mantissa_bits
_ROWS = 1 << power.ROW_BITS
_IN_ROW = power.ARGUMENT_BITS - power.ROW_BITS
_X_BITS = _IN_ROW + 1
_Y_BITS = 34
_LOW_BITS = 28
_SUM_BITS = 64
_CUT = 16
"""Fraction bits of the product of exponent and logarithm that are not kept."""

_ALIGN = _FRACTION_BITS + power.LOGARITHM_BITS - _CUT - power.ARGUMENT_BITS
"""Right shift of that product, for an exponent in [1, 2) and a logarithm that is not near zero."""

_LEAST_SHIFT = 4
"""Of that product. Less would be for exponents with which every base overflows or underflows."""

_ONE = FP32.bias << _FRACTION_BITS


class _Kind(enum.Enum, shape=2):
    COMPUTED = 0
    EXTREME = 1
    ONE = 2
    NAN = 3


class Fp32Power(wiring.Component):
    """out = a ** b in FP32, within 0.55 ulp: one rounding, to nearest even, of a value that near; subnormals kept.

    Powers that FP32 represents are exact. Special cases are those of IEEE 754-2019 pow: pow(x, 0) is 1 for every x and
    pow(1, y) for every y, NaN included; a negative base needs an integer exponent, or the result is NaN, and an odd one
    gives a negative result; pow(-1, Inf) is 1. NaN results are canonical.

    Ports:
        start: a computation starts; no earlier than `INTERVAL` cycles after the one before, which else is lost.
        a, b: base and exponent, FP32 storage words, looked at in the cycle of start only.
        out: FP32 storage word of the power, from `LATENCY` cycles after start until the next result.
    """

    INTERVAL = 14
    """Cycles from one start to the next."""

    LATENCY = INTERVAL + 1
    """Cycles from start to the first one in which out is the power."""

    start: In(1)
    a: In(32)
    b: In(32)
    out: Out(32)

    def elaborate(self, platform):
        m = Module()

        step = Signal(range(self.INTERVAL + 1))
        x = Signal(signed(_X_BITS), reset_less=True)
        total = Signal(signed(_SUM_BITS), reset_less=True)
        high = Signal(signed(_LOW_BITS), reset_less=True)
        row = Signal(power.ROW_BITS, reset_less=True)
        exponent = Signal(signed(FP32.exponent_bits + 1), reset_less=True)
        b_significand = Signal(FP32.precision, reset_less=True)
        b_field = Signal(FP32.exponent_bits, reset_less=True)
        b_sign = Signal(reset_less=True)
        kind, grows, sign = Signal(_Kind, reset_less=True), Signal(reset_less=True), Signal(reset_less=True)

        with m.If(step == self.INTERVAL):
            m.d.sync += step.eq(0)
        with m.Elif(step != 0):
            m.d.sync += step.eq(step + 1)

        y = Signal(signed(_Y_BITS))
        product = Signal(signed(_X_BITS + _Y_BITS))
        addend, scaled, added = (Signal(signed(_SUM_BITS), name=name) for name in ("addend", "scaled", "added"))
        m.d.comb += [
            y.eq(total[:_Y_BITS].as_signed()),
            product.eq(x * y),
            scaled.eq(product >> power.COEFFICIENT_BITS),
            added.eq(addend + scaled),
        ]

        # Next to a = 1 the table gives zero, and the logarithm is small.
        near = Signal()
        integer_part = Signal(signed(power.LOGARITHM_BITS + len(exponent)))
        leading = Signal(signed(_X_BITS + 2))
        m.d.comb += near.eq(((row == 0) & (exponent == 0)) | ((row == _ROWS - 1) & (exponent == -1)))
        numerator, leading_shift, rest_bits = power.LEADING
        to_rest = rest_bits - power.COEFFICIENT_BITS
        to_far = power.ARGUMENT_BITS + rest_bits - power.LOGARITHM_BITS
        leading_far = power.LOGARITHM_BITS - power.ARGUMENT_BITS - leading_shift
        m.d.comb += [
            leading.eq(x * numerator),
            integer_part.eq((exponent << power.LOGARITHM_BITS) + self._table(m, power.LOGARITHM, row, "logarithm")),
        ]

        # Once the product is aligned: integer part, row, and rest of the fraction.
        shift = Signal(signed(FP32.exponent_bits + 2))
        aligned = Signal(signed(_SUM_BITS - _LEAST_SHIFT))
        top = aligned[power.ARGUMENT_BITS + len(exponent) - 1 :]
        beyond = Signal()
        m.d.comb += [
            shift.eq(Mux(near, C(_ALIGN + power.NEAR_SHIFT), C(_ALIGN)) + FP32.bias - b_field - _LEAST_SHIFT),
            aligned.eq(total[_LEAST_SHIFT:].as_signed() >> Mux(shift[6:].any(), 63, shift[:6])),
            beyond.eq((shift < 0) | (top.any() & ~top.all())),
        ]

        log_first, *log_others = power.LOG_COEFFICIENTS
        exp_first, *exp_others = power.EXP_COEFFICIENTS
        with m.Switch(step):
            with m.Case(1):
                m.d.comb += y.eq(self._table(m, power.RECIPROCAL, row, "reciprocal"))
                m.d.sync += x.eq(product)
            for place, coefficient in zip(range(2, 5), reversed(log_others[:-1]), strict=True):
                with m.Case(place):
                    if place == 2:
                        m.d.comb += y.eq(log_others[-1])
                    m.d.comb += addend.eq(coefficient)
                    m.d.sync += total.eq(added)
            with m.Case(5):
                m.d.comb += [scaled.eq(product >> (power.COEFFICIENT_BITS - to_rest)), addend.eq(log_first)]
                m.d.sync += total.eq(added)
            with m.Case(6):
                with m.If(near):
                    m.d.comb += [
                        scaled.eq(product >> (to_far - power.NEAR_SHIFT)),
                        addend.eq(leading << (leading_far + power.NEAR_SHIFT)),
                    ]
                with m.Else():
                    m.d.comb += [scaled.eq(product >> to_far), addend.eq(integer_part + (leading << leading_far))]
                m.d.sync += [total.eq(added), x.eq(Mux(b_sign, -b_significand, b_significand))]
            with m.Case(7):
                m.d.comb += [y.eq(total[:_LOW_BITS]), scaled.eq(product >> _CUT)]
                m.d.sync += [total.eq(added), high.eq(total >> _LOW_BITS)]
            with m.Case(8):
                m.d.comb += [y.eq(high), scaled.eq(product << (_LOW_BITS - _CUT)), addend.eq(total)]
                m.d.sync += total.eq(added)
            with m.Case(9):
                m.d.sync += [
                    x.eq(aligned[:_IN_ROW]),
                    row.eq(aligned[_IN_ROW : power.ARGUMENT_BITS]),
                    exponent.eq(aligned[power.ARGUMENT_BITS :]),
                ]
                with m.If(beyond & (kind == _Kind.COMPUTED)):
                    m.d.sync += kind.eq(_Kind.EXTREME)
            with m.Case(10):
                m.d.comb += [y.eq(exp_others[1]), addend.eq(exp_others[0])]
                m.d.sync += total.eq(added)
            with m.Case(11):
                m.d.comb += addend.eq(exp_first)
                m.d.sync += total.eq(added)
            with m.Case(12):
                m.d.sync += x.eq(added)
            with m.Case(13):
                m.d.comb += [y.eq(self._table(m, power.EXPONENTIAL, row, "exponential")), addend.eq(y)]
                m.d.sync += total.eq(added)

        field = Signal(signed(FP32.exponent_bits + 2))
        m.d.comb += field.eq(exponent + FP32.bias)
        magnitude = pack_fp32(m, total[: power.ARGUMENT_BITS + 1], field)
        with m.If(step == self.INTERVAL):
            with m.Switch(kind):
                with m.Case(_Kind.COMPUTED):
                    m.d.sync += self.out.eq(Cat(magnitude, sign))
                with m.Case(_Kind.EXTREME):
                    m.d.sync += self.out.eq(Cat(Mux(grows, C(FP32.infinity, 31), 0), sign))
                with m.Case(_Kind.ONE):
                    m.d.sync += self.out.eq(Cat(C(_ONE, 31), sign))
                with m.Case(_Kind.NAN):
                    m.d.sync += self.out.eq(FP32.nan)

        a_fraction, a_field = self.a[:_FRACTION_BITS], self.a[_FRACTION_BITS:31]
        significand, zeros = normalise(m, Cat(a_fraction, a_field.any()), "a")
        with m.If(self.start):
            m.d.sync += [
                step.eq(1),
                x.eq(significand),
                row.eq(significand[_FRACTION_BITS - power.ROW_BITS : _FRACTION_BITS]),
                exponent.eq(Cat(a_field[0] | ~a_field.any(), a_field[1:]) - Cat(*zeros) - FP32.bias),
                b_significand.eq(Cat(self.b[:_FRACTION_BITS], self.b[_FRACTION_BITS:31].any())),
                b_field.eq(self.b[_FRACTION_BITS:31]),
                b_sign.eq(self.b[31]),
            ]
            self._classify(m, kind, grows, sign)
        return m

    def _table(self, m: Module, words: tuple[int, ...], row: Signal, name: str):
        """Return the word of a row, combinationally."""
        word = Signal(range(max(words) + 1), name=name)
        with m.Switch(row):
            for number, value in enumerate(words):
                with m.Case(number):
                    m.d.comb += word.eq(value)
        return word

    def _classify(self, m: Module, kind: Signal, grows: Signal, sign: Signal) -> None:
        """Register what kind of result this is, whether an extreme one is infinite, and its sign."""
        a_size, b_size = self.a[:31], self.b[:31]
        a_zero, a_inf, a_nan = ~a_size.any(), a_size == FP32.infinity, a_size > FP32.infinity
        b_zero, b_inf, b_nan = ~b_size.any(), b_size == FP32.infinity, b_size > FP32.infinity
        b_field = b_size[_FRACTION_BITS:]

        # The units digit of b comes to the top, its fraction below; above 2 ** 24 every number is even.
        places = Signal(signed(FP32.exponent_bits + 1))
        digits = Signal(FP32.precision)
        integer, odd, unit_base = Signal(), Signal(), Signal()
        m.d.comb += [
            places.eq(b_field - FP32.bias),
            digits.eq(Cat(b_size[:_FRACTION_BITS], 1) << places[:5]),
            integer.eq(b_zero | ((places >= 0) & ((places > _FRACTION_BITS) | ~digits[:-1].any()))),
            odd.eq((places >= 0) & (places <= _FRACTION_BITS) & digits[-1] & integer),
            unit_base.eq(a_size == _ONE),
        ]
        undefined = a_nan | b_nan | (self.a[31] & ~a_zero & ~a_inf & ~integer)
        m.d.sync += [
            grows.eq((a_size > _ONE) ^ self.b[31]),
            sign.eq(self.a[31] & odd),
            kind.eq(_Kind.COMPUTED),
        ]
        with m.If(b_zero | (unit_base & ~self.a[31])):
            m.d.sync += kind.eq(_Kind.ONE)
        with m.Elif(undefined):
            m.d.sync += kind.eq(_Kind.NAN)
        with m.Elif(unit_base):
            m.d.sync += kind.eq(_Kind.ONE)
        with m.Elif(a_zero | a_inf | b_inf):
            m.d.sync += kind.eq(_Kind.EXTREME)
