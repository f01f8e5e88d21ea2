"""IEEE 754 binary32 division and remainder by digit recurrence: three quotient bits per cycle, no multiplier.

Significands are normalised, also of subnormals, and a dividend below the divisor is doubled: the quotient has a leading
one and 24 more bits, the last for rounding. Each step of the restoring division doubles the remainder and subtracts the
divisor if it fits, so the remainder stays below the divisor. The last remainder tells whether the quotient is exact.

A remainder takes one step per unit of exponent difference, at most 276. Its latency is always that of 276 steps, so
that all lanes finish in the same cycle. A dividend with the smaller exponent is the remainder, without a step. If the
quotient is floored and the signs differ, the divisor is added: the second to last cycle subtracts the remainder's
magnitude from the divisor. In this case the steps shift a dividend with the smaller exponent right, to align it with
the divisor; bits below two guard bits are merged into a sticky bit.

The first cycle normalises, eight divide, one rounds. A division may start in the last recurrence cycle of the previous
division. The previous quotient is then rounded during the first recurrence cycle of the new one, which changes the
inputs of the rounding only at its end.
"""

from types import SimpleNamespace

from amaranth import Array, Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import enum, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.arith.fp32 import Fp32
from neuroncore_rtl.hdl.arith.normalise import normalise
from neuroncore_rtl.hdl.arith.pack import pack_fp32
from neuroncore_rtl.spec.formats import FP32

__all__ = ["Fp32Divider"]

_DIGIT_BITS = 3
_QUOTIENT_BITS = FP32.precision
"""Bits of a quotient after its leading one: the fraction and the rounding bit."""

_WIDTH = FP32.precision
_GUARD_BITS = 2
"""Bits below the last place of the divisor, for adding it to a smaller number of the other sign."""

_EXPONENTS = FP32.max_exponent - (FP32.min_exponent - FP32.mantissa_bits)
"""Largest difference of two exponents; a subnormal's exponent is that of its leading one."""

_FARTHEST = _WIDTH + _GUARD_BITS + 1
"""Right shift of a dividend after which only its sticky bit remains."""

_EXPONENT = signed(FP32.exponent_bits + 2)


class _Kind(enum.Enum, shape=2):
    FINITE = 0
    ZERO = 1
    INFINITE = 2
    NAN = 3


class Fp32Divider(wiring.Component):
    """Divider: out = a / b in FP32, rounded once to nearest even, or the remainder.

    Quotient: subnormals are kept; x / 0 is an infinity with the quotient's sign, if x is neither 0 nor NaN; 0 / 0 and
    Inf / Inf are NaN; NaN results are canonical.

    Remainder: with a truncated quotient it is exact and has the sign of a. With a floored quotient it has the sign of
    b, and is rounded if b is added to a smaller a of the other sign. The remainder of an infinity, or of a division by
    0, is NaN. If b is infinite, the remainder is a, or b if the quotient is floored and the signs differ. A zero
    remainder has the sign that the rule gives to a nonzero one.

    Ports:
        start: start an operation; aborts the previous operation if that started less than `INTERVAL` cycles before (a
            remainder: `REMAINDER_INTERVAL`).
        a, b: FP32 words, sampled with start.
        remainder: 1 for the remainder, 0 for the quotient, sampled with start.
        floored: the remainder's quotient is floored, else truncated; sampled with start.
        out: FP32 word, from `LATENCY` cycles after start (remainder: `REMAINDER_LATENCY`) until the next result.
    """

    INTERVAL = _QUOTIENT_BITS // _DIGIT_BITS
    """Cycles from the start of a division to the next start."""

    LATENCY = INTERVAL + 2
    """Cycles from the start of a division to the first in which out is the quotient."""

    REMAINDER_INTERVAL = -(-_EXPONENTS // _DIGIT_BITS) + 1
    """Cycles from the start of a remainder to the next start."""

    REMAINDER_LATENCY = REMAINDER_INTERVAL + 2
    """Cycles from the start of a remainder to the first in which out is the remainder."""

    start: In(1)
    a: In(32)
    b: In(32)
    remainder: In(1)
    floored: In(1)
    out: Out(32)

    def elaborate(self, platform):
        m = Module()
        a, b = Fp32(self.a), Fp32(self.b)
        a_significand, a_exponent = self._normalised(m, a, "a")
        b_significand, b_exponent = self._normalised(m, b, "b")
        now = self._remains(m, a, b, a_exponent, b_exponent)
        kind_now = self._kind(m, a, b, now.adds)
        difference = Signal(signed(_WIDTH + 1))
        less, keeps = Signal(), Signal()
        m.d.comb += [
            difference.eq(a_significand - b_significand),
            less.eq(difference < 0),
            # A dividend below the divisor is the first partial remainder; for a quotient it is doubled.
            keeps.eq(self.remainder & (now.below | less)),
        ]

        left = Signal(range(self.REMAINDER_INTERVAL + 1))
        divisor, remainder = Signal(_WIDTH, reset_less=True), Signal(_WIDTH, reset_less=True)
        quotient = Signal(_WIDTH + _GUARD_BITS, reset_less=True)
        field, sign = Signal(_EXPONENT, reset_less=True), Signal(reset_less=True)
        kind = Signal(_Kind, reset_less=True)
        remains, adds, below = (Signal(name=name, reset_less=True) for name in ("remains", "adds", "below"))
        steps, guard = Signal(range(_EXPONENTS + 1), reset_less=True), Signal(_GUARD_BITS + 1, reset_less=True)
        afters, bits = self._recurrence(m, remainder, divisor)
        rest = Signal(_WIDTH)
        m.d.comb += rest.eq(afters[-1])
        with m.If(remains & below):
            m.d.comb += rest.eq(Mux(steps.any(), remainder >> 1, remainder))
        with m.Elif(remains & (steps < _DIGIT_BITS)):
            m.d.comb += rest.eq(Array([remainder, *afters])[steps[:2]])
        with m.If(left != 0):
            m.d.sync += [left.eq(left - 1), remainder.eq(rest), quotient.eq(Cat(bits, quotient))]
            with m.If(remains):
                m.d.sync += steps.eq(Mux(below, steps - steps.any(), Mux(steps < _DIGIT_BITS, 0, steps - _DIGIT_BITS)))
            with m.If(remains & below & steps.any()):
                m.d.sync += guard.eq(Cat(guard[:2].any(), guard[2], remainder[0]))
            with m.If(remains & (left == 1)):
                # A set sticky bit is a fraction of the last guard bit: the difference is rounded down, inexact.
                parted = Cat(guard[1:], remainder)
                added = Cat(Const(0, _GUARD_BITS), divisor) - parted - guard[0]
                m.d.sync += quotient.eq(Mux(adds & remainder.any() | (below & adds), added, parted))
        with m.If(self.start):
            m.d.sync += [
                left.eq(Mux(self.remainder, self.REMAINDER_INTERVAL, self.INTERVAL)),
                divisor.eq(b_significand),
                remainder.eq(Mux(keeps, a_significand, difference + Mux(less, a_significand, 0))),
                field.eq(Mux(self.remainder, now.field, a_exponent - b_exponent + FP32.bias - less)),
                sign.eq(Mux(self.remainder, Mux(self.floored, b.sign, a.sign), a.sign ^ b.sign)),
                kind.eq(kind_now),
                remains.eq(self.remainder),
                adds.eq(now.adds),
                below.eq(now.below),
                steps.eq(now.steps),
                guard.eq(0),
            ]
        inexact = Mux(remains, guard[0], rest.any())
        self._round(m, left == 1, quotient, remains, inexact, field, sign, kind)
        return m

    def _normalised(self, m: Module, word: Fp32, name: str) -> tuple[Value, Value]:
        """Return the significand shifted until its top bit is one, and its exponent field, which may be below 1."""
        significand, shift = normalise(m, word.significand, name)
        exponent = Signal(_EXPONENT, name=f"{name}_exponent")
        m.d.comb += exponent.eq(word.exponent - shift)
        return significand, exponent

    def _remains(self, m: Module, a: Fp32, b: Fp32, a_exponent, b_exponent) -> SimpleNamespace:
        """Return the set-up of a remainder.

        `below`: the dividend has the smaller exponent. `adds`: the divisor is added to the remainder, unless that is
        zero. `steps`: the number of steps. `field`: the result's exponent field before normalisation.
        """
        now = SimpleNamespace(
            below=Signal(name="now_below"),
            adds=Signal(name="now_adds"),
            steps=Signal(range(_EXPONENTS + 1), name="now_steps"),
            field=Signal(_EXPONENT, name="now_field"),
        )
        distance, places = Signal(signed(_EXPONENT.width + 1)), Signal(_EXPONENT.width)
        m.d.comb += [
            distance.eq(a_exponent - b_exponent),
            now.below.eq(distance < 0),
            now.adds.eq(self.floored & (a.sign ^ b.sign)),
            places.eq(Mux(now.below, -distance, distance)),
            now.field.eq(Mux(now.below & ~now.adds, a_exponent, b_exponent)),
        ]
        with m.If(~now.below):
            m.d.comb += now.steps.eq(places)
        with m.Elif(now.adds):
            m.d.comb += now.steps.eq(Mux(places > _FARTHEST, _FARTHEST, places))
        return now

    def _kind(self, m: Module, a: Fp32, b: Fp32, adds: Value) -> Signal:
        kind = Signal(_Kind)
        undefined = Mux(self.remainder, a.infinite | b.zero, (a.zero & b.zero) | (a.infinite & b.infinite))
        infinite = Mux(self.remainder, b.infinite & adds & ~a.zero, a.infinite | b.zero)
        with m.If(a.nan | b.nan | undefined):
            m.d.comb += kind.eq(_Kind.NAN)
        with m.Elif(infinite):
            m.d.comb += kind.eq(_Kind.INFINITE)
        with m.Elif(a.zero | (b.infinite & ~self.remainder)):
            m.d.comb += kind.eq(_Kind.ZERO)
        return kind

    def _round(self, m: Module, ends, quotient, remains, inexact, field, sign, kind) -> None:
        """Round the quotient or remainder in the cycle after the last cycle of the recurrence."""
        ended, ended_inexact, ended_remains = Signal(), Signal(reset_less=True), Signal(reset_less=True)
        ended_field, ended_sign = Signal(_EXPONENT, reset_less=True), Signal(reset_less=True)
        ended_kind = Signal(_Kind, reset_less=True)
        m.d.sync += ended.eq(ends)
        with m.If(ends):
            m.d.sync += [
                ended_field.eq(field),
                ended_sign.eq(sign),
                ended_kind.eq(kind),
                ended_inexact.eq(inexact),
                ended_remains.eq(remains),
            ]
        # A quotient has an implicit leading one; a remainder may have leading zeros.
        found = Mux(ended_remains, quotient, Cat(Const(0, 1), quotient[:_QUOTIENT_BITS], Const(1, 1)))
        significand, shift = normalise(m, found, "found")
        found_field = Signal(_EXPONENT)
        m.d.comb += found_field.eq(ended_field - shift)
        magnitude = pack_fp32(m, significand, found_field, ended_inexact)
        with m.If(ended), m.Switch(ended_kind):
            with m.Case(_Kind.FINITE):
                m.d.sync += self.out.eq(Cat(Mux(significand[-1], magnitude, 0)[:31], ended_sign))
            with m.Case(_Kind.ZERO):
                m.d.sync += self.out.eq(ended_sign << 31)
            with m.Case(_Kind.INFINITE):
                m.d.sync += self.out.eq(FP32.infinity | ended_sign << 31)
            with m.Case(_Kind.NAN):
                m.d.sync += self.out.eq(FP32.nan)

    def _recurrence(self, m: Module, remainder, divisor):
        """Divide for one cycle: return the remainder after each quotient bit, and these bits, the first one highest."""
        bits, afters = [], []
        for step in range(_DIGIT_BITS):
            trial = Signal(signed(_WIDTH + 2), name=f"trial{step}")
            fits = Signal(name=f"fits{step}")
            after = Signal(_WIDTH, name=f"remainder{step}")
            doubled = Cat(0, remainder)
            m.d.comb += [
                trial.eq(doubled - divisor),
                fits.eq(trial >= 0),
                after.eq(Mux(fits, trial[:_WIDTH], doubled[:_WIDTH])),
            ]
            bits.insert(0, fits)
            remainder = after
            afters.append(after)
        return afters, Cat(*bits)
