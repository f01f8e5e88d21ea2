"""IEEE 754 binary32 division by digit recurrence: three bits of the quotient a cycle, no multiplier.

Both significands are normalised, subnormal ones too, and the dividend is doubled if it is the smaller one: the quotient
then starts with a one, and 24 bits follow, the last of them for the rounding. The remainder stays below the divisor;
each step doubles it and takes the divisor away if it can (restoring division). What remains in the end says whether the
quotient is exact.

The first cycle normalises, eight divide, one rounds. The first cycle of a division may be the last recurrence of the
one before it, and its rounding the first recurrence of this: nothing that the rounding looks at changes before then.
"""

from amaranth import Cat, Module, Mux, Signal, Value, signed
from amaranth.lib import enum, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.arith.fp32 import Fp32
from neuroncore_rtl.hdl.arith.normalise import normalise
from neuroncore_rtl.hdl.arith.pack import pack_fp32
from neuroncore_rtl.spec.formats import FP32

__all__ = ["Fp32Divider"]

_DIGIT_BITS = 3
_QUOTIENT_BITS = FP32.precision
"""Bits after the leading one: the fraction and the rounding bit."""

_WIDTH = FP32.precision
_EXPONENT = signed(FP32.exponent_bits + 2)


class _Kind(enum.Enum, shape=2):
    FINITE = 0
    ZERO = 1
    INFINITE = 2
    NAN = 3


class Fp32Divider(wiring.Component):
    """out = a / b in FP32, one rounding to nearest even.

    Subnormals are kept; x / 0 is an infinity, with the sign of the quotient, for every other x than 0 and NaN; 0 / 0
    and Inf / Inf are NaN; NaN results are canonical.

    Ports:
        start: a division starts; no earlier than `INTERVAL` cycles after the one before, which else is lost.
        a, b: FP32 storage words, looked at in the cycle of start only.
        out: FP32 storage word of the quotient, from `LATENCY` cycles after start until the next result.
    """

    INTERVAL = _QUOTIENT_BITS // _DIGIT_BITS
    """Cycles from one start to the next."""

    LATENCY = INTERVAL + 2
    """Cycles from start to the first one in which out is the quotient."""

    start: In(1)
    a: In(32)
    b: In(32)
    out: Out(32)

    def elaborate(self, platform):
        m = Module()
        a, b = Fp32(self.a), Fp32(self.b)
        a_significand, a_exponent = self._normalised(m, a, "a")
        b_significand, b_exponent = self._normalised(m, b, "b")
        kind_now = self._kind(m, a, b)
        difference = Signal(signed(_WIDTH + 1))
        less = Signal()
        m.d.comb += [difference.eq(a_significand - b_significand), less.eq(difference < 0)]

        left = Signal(range(self.INTERVAL + 1))
        divisor, remainder = Signal(_WIDTH, reset_less=True), Signal(_WIDTH, reset_less=True)
        quotient = Signal(_QUOTIENT_BITS, reset_less=True)
        field, sign = Signal(_EXPONENT, reset_less=True), Signal(reset_less=True)
        kind = Signal(_Kind, reset_less=True)
        rest, bits = self._recurrence(m, remainder, divisor)
        with m.If(left != 0):
            m.d.sync += [left.eq(left - 1), remainder.eq(rest), quotient.eq(Cat(bits, quotient))]
        with m.If(self.start):
            m.d.sync += [
                left.eq(self.INTERVAL),
                divisor.eq(b_significand),
                remainder.eq(difference + Mux(less, a_significand, 0)),
                field.eq(a_exponent - b_exponent + FP32.bias - less),
                sign.eq(a.sign ^ b.sign),
                kind.eq(kind_now),
            ]
        self._round(m, left == 1, quotient, rest, field, sign, kind)
        return m

    def _normalised(self, m: Module, word: Fp32, name: str) -> tuple[Value, Value]:
        """Return the significand with its top bit one, and the exponent field extended below 1."""
        significand, shift = normalise(m, word.significand, name)
        exponent = Signal(_EXPONENT, name=f"{name}_exponent")
        m.d.comb += exponent.eq(word.exponent - shift)
        return significand, exponent

    def _kind(self, m: Module, a: Fp32, b: Fp32) -> Signal:
        kind = Signal(_Kind)
        with m.If(a.nan | b.nan | (a.zero & b.zero) | (a.infinite & b.infinite)):
            m.d.comb += kind.eq(_Kind.NAN)
        with m.Elif(a.infinite | b.zero):
            m.d.comb += kind.eq(_Kind.INFINITE)
        with m.Elif(a.zero | b.infinite):
            m.d.comb += kind.eq(_Kind.ZERO)
        return kind

    def _round(self, m: Module, ends, quotient, rest, field, sign, kind) -> None:
        """Make the word in the cycle after the last recurrence, from what was there at its end."""
        ended, inexact = Signal(), Signal(reset_less=True)
        ended_field, ended_sign = Signal(_EXPONENT, reset_less=True), Signal(reset_less=True)
        ended_kind = Signal(_Kind, reset_less=True)
        m.d.sync += ended.eq(ends)
        with m.If(ends):
            m.d.sync += [ended_field.eq(field), ended_sign.eq(sign), ended_kind.eq(kind), inexact.eq(rest.any())]
        magnitude = pack_fp32(m, Cat(quotient, 1), ended_field, inexact)
        with m.If(ended), m.Switch(ended_kind):
            with m.Case(_Kind.FINITE):
                m.d.sync += self.out.eq(Cat(magnitude, ended_sign))
            with m.Case(_Kind.ZERO):
                m.d.sync += self.out.eq(ended_sign << 31)
            with m.Case(_Kind.INFINITE):
                m.d.sync += self.out.eq(FP32.infinity | ended_sign << 31)
            with m.Case(_Kind.NAN):
                m.d.sync += self.out.eq(FP32.nan)

    def _recurrence(self, m: Module, remainder, divisor):
        """Return the remainder after one cycle, and the bits of the quotient that this gives, the first one highest."""
        bits = []
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
        return remainder, Cat(*bits)
