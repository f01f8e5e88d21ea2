"""FP32 power a ** b = 2 ** (b * log2(a)): tables and polynomials on one multiplier of 27 by 34 bits.

One multiplication per cycle, all in fixed point; every right shift rounds toward minus infinity. Tables and
coefficients are in `spec/power.py`, which also explains the decomposition of the logarithm and the power of two.

    step   multiplicand x      multiplier              result
    1      significand of a    reciprocal of its row   r
    2-5    r                   coefficient, sums       logarithm polynomial without its leading part
    6      r                   the polynomial          log2(a), 47 fraction bits; 60 near a = 1, where it is small
    7, 8   significand of b    the logarithm, halved   their product
    9                                                  the product as integer and fraction, in 32 fraction bits
    10-12  fraction in row     coefficient, sums       2 ** fraction in row, less 1
    13     that result         its row                 the significand, 32 fraction bits
    14                                                 out

The logarithm has a relative error below 2**-35 even near zero. The logarithm of the result is below 150, so the
unrounded result is within 0.05 ulp everywhere.
"""

from amaranth import C, Cat, Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.arith.fp32 import Fp32
from neuroncore_rtl.hdl.arith.normalise import normalise
from neuroncore_rtl.hdl.arith.pack import pack_fp32
from neuroncore_rtl.hdl.arith.power_kind import ONE, PowerKind, classify
from neuroncore_rtl.spec import power, timing
from neuroncore_rtl.spec.formats import FP32

__all__ = ["Fp32Power"]

_FRACTION_BITS = FP32.mantissa_bits
_ROWS = 1 << power.POWER_ROW_BITS
_IN_ROW = power.ARGUMENT_BITS - power.POWER_ROW_BITS
_X_BITS = _IN_ROW + 1
_Y_BITS = 34
_LOW_BITS = 28
_SUM_BITS = 64
_CUT = 16
"""Fraction bits dropped from the product of exponent and logarithm."""

_ALIGN = _FRACTION_BITS + power.LOGARITHM_BITS - _CUT - power.ARGUMENT_BITS
"""Right shift of that product for a b in [1, 2) and a logarithm not near zero."""

_LEAST_SHIFT = 4
"""Least right shift of that product. Only a b that makes every base overflow or underflow needs a smaller shift."""


class _State:
    """Registers of the computation: the multiplicand x, the running total, and the decoded operands."""

    def __init__(self, steps: int):
        self.step = Signal(range(steps + 1))
        self.x = Signal(signed(_X_BITS), reset_less=True)
        self.total = Signal(signed(_SUM_BITS), reset_less=True)
        self.high = Signal(signed(_LOW_BITS), reset_less=True)
        self.row = Signal(power.POWER_ROW_BITS, reset_less=True)
        self.exponent = Signal(signed(FP32.exponent_bits + 1), reset_less=True)
        self.b_significand = Signal(FP32.precision, reset_less=True)
        self.b_field = Signal(FP32.exponent_bits, reset_less=True)
        self.b_sign = Signal(reset_less=True)
        self.kind = Signal(PowerKind, reset_less=True)
        self.grows = Signal(reset_less=True)
        self.sign = Signal(reset_less=True)


class _Multiplier:
    """The multiplier and its adder: added = addend + scaled.

    By default addend is 0, and scaled the product of x and the low part of the total, without the coefficients'
    fraction bits.
    """

    def __init__(self, m: Module, state: _State):
        self._m = m
        self._total = state.total
        self.y = Signal(signed(_Y_BITS))
        self.product = Signal(signed(_X_BITS + _Y_BITS))
        self.addend, self.scaled, self.added = (
            Signal(signed(_SUM_BITS), name=name) for name in ("addend", "scaled", "added")
        )
        m.d.comb += [
            self.y.eq(state.total[:_Y_BITS].as_signed()),
            self.product.eq(state.x * self.y),
            self.scaled.eq(self.product >> power.COEFFICIENT_BITS),
            self.added.eq(self.addend + self.scaled),
        ]

    def takes(self, **operands: Value | int) -> None:
        """Set the multiplier's inputs `y`, `scaled` or `addend` for the current step instead of their defaults."""
        self._m.d.comb += [getattr(self, name).eq(value) for name, value in operands.items()]

    def adds_up(self, **operands: Value | int) -> None:
        """Set inputs for the current step as `takes` does, and load the total with `added` at its end."""
        self.takes(**operands)
        self._m.d.sync += self._total.eq(self.added)


class Fp32Power(wiring.Component):
    """Power unit: out = a ** b in FP32, within 0.55 ulp; subnormals are kept.

    The unrounded result is within 0.05 ulp and rounded once, to nearest even; powers that FP32 represents are exact.
    Special cases follow IEEE 754-2019 pow: pow(x, 0) and pow(1, y) are 1, also for NaN; a negative base needs an
    integer exponent, else the result is NaN, and is negative if that is odd; pow(-1, Inf) is 1. NaN results are
    canonical.

    Ports:
        start: start a computation; aborts the previous one if that started less than `INTERVAL` cycles before.
        a, b: base and exponent, FP32 words, sampled with start.
        out: FP32 word of the power, from `LATENCY` cycles after start until the next result.
    """

    INTERVAL = timing.POWER_INTERVAL
    """Cycles from one start to the next."""

    LATENCY = INTERVAL + 1
    """Cycles from start to the first in which out is the power."""

    start: In(1)
    a: In(32)
    b: In(32)
    out: Out(32)

    def elaborate(self, platform):
        m = Module()
        state = _State(self.INTERVAL)
        step = state.step
        with m.If(step == self.INTERVAL):
            m.d.sync += step.eq(0)
        with m.Elif(step != 0):
            m.d.sync += step.eq(step + 1)

        multiplier = _Multiplier(m, state)
        near, leading, integer_part = self._exact_parts(m, state)
        aligned, beyond = self._aligned(m, state, near)
        with m.Switch(step):
            self._logarithm(m, state, multiplier)
            self._times_b(m, state, multiplier, near, leading, integer_part)
            with m.Case(9):
                m.d.sync += [
                    state.x.eq(aligned[:_IN_ROW]),
                    state.row.eq(aligned[_IN_ROW : power.ARGUMENT_BITS]),
                    state.exponent.eq(aligned[power.ARGUMENT_BITS :]),
                ]
                with m.If(beyond & (state.kind == PowerKind.COMPUTED)):
                    m.d.sync += state.kind.eq(PowerKind.EXTREME)
            self._power_of_two(m, state, multiplier)
        self._finish(m, state)
        self._start(m, state)
        return m

    def _start(self, m: Module, state: _State) -> None:
        a, b = Fp32(self.a), Fp32(self.b)
        significand, zeros = normalise(m, a.significand, "a")
        with m.If(self.start):
            m.d.sync += [
                state.step.eq(1),
                state.x.eq(significand),
                state.row.eq(significand[_FRACTION_BITS - power.POWER_ROW_BITS : _FRACTION_BITS]),
                state.exponent.eq(a.exponent - zeros - FP32.bias),
                state.b_significand.eq(b.significand),
                state.b_field.eq(b.field),
                state.b_sign.eq(b.sign),
            ]
            classify(m, a, b, state.kind, state.grows, state.sign)

    def _logarithm(self, m: Module, state: _State, multiplier: _Multiplier) -> None:
        """Perform steps 1 to 5: x becomes r; the total becomes the logarithm polynomial without its leading part."""
        first, *others, last = power.LOG_COEFFICIENTS
        rest_bits = power.LEADING[2]
        with m.Case(1):
            multiplier.takes(y=_table(m, power.RECIPROCAL, state.row, "reciprocal"))
            m.d.sync += state.x.eq(multiplier.product)
        for place, coefficient in zip(range(2, 5), reversed(others), strict=True):
            with m.Case(place):
                multiplier.adds_up(addend=coefficient, **({"y": last} if place == 2 else {}))
        with m.Case(5):
            multiplier.adds_up(scaled=multiplier.product >> (2 * power.COEFFICIENT_BITS - rest_bits), addend=first)

    def _exact_parts(self, m: Module, state: _State) -> tuple[Signal, Signal, Signal]:
        """Return `near`, the polynomial's leading part, and the logarithm's part from exponent and row.

        The two parts are addends of the logarithm. `near`: a is next to 1, where the table gives zero and the logarithm
        is small.
        """
        near = Signal()
        leading = Signal(signed(_X_BITS + 2))
        integer_part = Signal(signed(power.LOGARITHM_BITS + len(state.exponent)))
        row, exponent = state.row, state.exponent
        m.d.comb += [
            near.eq(((row == 0) & (exponent == 0)) | ((row == _ROWS - 1) & (exponent == -1))),
            leading.eq(state.x * power.LEADING[0]),
            integer_part.eq((exponent << power.LOGARITHM_BITS) + _table(m, power.LOGARITHM, row, "logarithm")),
        ]
        return near, leading, integer_part

    def _times_b(self, m: Module, state: _State, multiplier: _Multiplier, near, leading, integer_part) -> None:
        """Perform steps 6 to 8: the total becomes log2(a), then log2(a) * b."""
        product = multiplier.product
        _, leading_shift, rest_bits = power.LEADING
        to_far = power.ARGUMENT_BITS + rest_bits - power.LOGARITHM_BITS
        leading_far = power.LOGARITHM_BITS - power.ARGUMENT_BITS - leading_shift
        with m.Case(6):
            with m.If(near):
                multiplier.takes(
                    scaled=product >> (to_far - power.NEAR_SHIFT), addend=leading << (leading_far + power.NEAR_SHIFT)
                )
            with m.Else():
                multiplier.takes(scaled=product >> to_far, addend=integer_part + (leading << leading_far))
            multiplier.adds_up()
            m.d.sync += state.x.eq(Mux(state.b_sign, -state.b_significand, state.b_significand))
        with m.Case(7):
            multiplier.adds_up(y=state.total[:_LOW_BITS], scaled=product >> _CUT)
            m.d.sync += state.high.eq(state.total >> _LOW_BITS)
        with m.Case(8):
            multiplier.adds_up(y=state.high, scaled=product << (_LOW_BITS - _CUT), addend=state.total)

    def _aligned(self, m: Module, state: _State, near: Signal) -> tuple[Signal, Signal]:
        """Return the total as a fixed-point number, and whether it is beyond the range of all FP32 exponents.

        The number has an integer part, a row of the exponential table, and a fraction within the row.
        """
        shift = Signal(signed(FP32.exponent_bits + 2))
        aligned = Signal(signed(_SUM_BITS - _LEAST_SHIFT))
        top = aligned[power.ARGUMENT_BITS + len(state.exponent) - 1 :]
        beyond = Signal()
        m.d.comb += [
            shift.eq(Mux(near, C(_ALIGN + power.NEAR_SHIFT), C(_ALIGN)) + FP32.bias - state.b_field - _LEAST_SHIFT),
            aligned.eq(state.total[_LEAST_SHIFT:].as_signed() >> Mux(shift[6:].any(), 63, shift[:6])),
            beyond.eq((shift < 0) | (top.any() & ~top.all())),
        ]
        return aligned, beyond

    def _power_of_two(self, m: Module, state: _State, multiplier: _Multiplier) -> None:
        """Perform steps 10 to 13: the total becomes the significand of the result."""
        first, second, last = power.EXP_COEFFICIENTS
        with m.Case(10):
            multiplier.adds_up(y=last, addend=second)
        with m.Case(11):
            multiplier.adds_up(addend=first)
        with m.Case(12):
            m.d.sync += state.x.eq(multiplier.added)
        with m.Case(13):
            row = _table(m, power.EXPONENTIAL, state.row, "exponential")
            multiplier.adds_up(y=row, addend=multiplier.y)

    def _finish(self, m: Module, state: _State) -> None:
        field = Signal(signed(FP32.exponent_bits + 2))
        m.d.comb += field.eq(state.exponent + FP32.bias)
        magnitude = pack_fp32(m, state.total[: power.ARGUMENT_BITS + 1], field)
        with m.If(state.step == self.INTERVAL), m.Switch(state.kind):
            with m.Case(PowerKind.COMPUTED):
                m.d.sync += self.out.eq(Cat(magnitude, state.sign))
            with m.Case(PowerKind.EXTREME):
                m.d.sync += self.out.eq(Cat(Mux(state.grows, C(FP32.infinity, 31), 0), state.sign))
            with m.Case(PowerKind.ONE):
                m.d.sync += self.out.eq(Cat(C(ONE, 31), state.sign))
            with m.Case(PowerKind.NAN):
                m.d.sync += self.out.eq(FP32.nan)


def _table(m: Module, words: tuple[int, ...], row: Signal, name: str) -> Signal:
    """Return entry `row` of the constant table `words`, combinationally."""
    word = Signal(range(max(words) + 1), name=name)
    with m.Switch(row):
        for number, value in enumerate(words):
            with m.Case(number):
                m.d.comb += word.eq(value)
    return word
