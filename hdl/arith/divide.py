"""IEEE 754 binary32 division by digit recurrence: three bits of the quotient a cycle, no multiplier.

Both significands are normalised, subnormal ones too, and the dividend is doubled if it is the smaller one: the quotient
then starts with a one, and 24 bits follow, the last of them for the rounding. The remainder stays below the divisor;
each step doubles it and takes the divisor away if it can (restoring division). What remains in the end says whether the
quotient is exact.

The first cycle normalises, eight divide, one rounds. The first cycle of a division may be the last recurrence of the
one before it, and its rounding the first recurrence of this: nothing that the rounding looks at changes before then.
"""

from amaranth import Cat, Module, Mux, Signal, signed
from amaranth.lib import enum, wiring
from amaranth.lib.wiring import In, Out

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

        a_significand, a_exponent, a_zero, a_inf, a_nan = self._operand(m, self.a, "a")
        b_significand, b_exponent, b_zero, b_inf, b_nan = self._operand(m, self.b, "b")
        difference = Signal(signed(_WIDTH + 1))
        less = Signal()
        kind_now = Signal(_Kind)
        m.d.comb += [
            difference.eq(a_significand - b_significand),
            less.eq(difference < 0),
        ]
        with m.If(a_nan | b_nan | (a_zero & b_zero) | (a_inf & b_inf)):
            m.d.comb += kind_now.eq(_Kind.NAN)
        with m.Elif(a_inf | b_zero):
            m.d.comb += kind_now.eq(_Kind.INFINITE)
        with m.Elif(a_zero | b_inf):
            m.d.comb += kind_now.eq(_Kind.ZERO)

        left = Signal(range(self.INTERVAL + 1))
        divisor = Signal(_WIDTH, reset_less=True)
        remainder = Signal(_WIDTH, reset_less=True)
        quotient = Signal(_QUOTIENT_BITS, reset_less=True)
        field = Signal(_EXPONENT, reset_less=True)
        sign = Signal(reset_less=True)
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
                sign.eq(self.a[31] ^ self.b[31]),
                kind.eq(kind_now),
            ]

        ended = Signal()
        ended_field = Signal(_EXPONENT, reset_less=True)
        ended_sign = Signal(reset_less=True)
        ended_kind = Signal(_Kind, reset_less=True)
        inexact = Signal(reset_less=True)
        m.d.sync += ended.eq(left == 1)
        with m.If(left == 1):
            m.d.sync += [ended_field.eq(field), ended_sign.eq(sign), ended_kind.eq(kind), inexact.eq(rest.any())]
        magnitude = pack_fp32(m, Cat(quotient, 1), ended_field, inexact)
        with m.If(ended):
            with m.Switch(ended_kind):
                with m.Case(_Kind.FINITE):
                    m.d.sync += self.out.eq(Cat(magnitude, ended_sign))
                with m.Case(_Kind.ZERO):
                    m.d.sync += self.out.eq(ended_sign << 31)
                with m.Case(_Kind.INFINITE):
                    m.d.sync += self.out.eq(FP32.infinity | ended_sign << 31)
                with m.Case(_Kind.NAN):
                    m.d.sync += self.out.eq(FP32.nan)
        return m

    def _operand(self, m: Module, word, name: str):
        """Return (significand with its top bit one, exponent field extended below 1, zero, infinite, NaN)."""
        fraction, field = word[: FP32.mantissa_bits], word[FP32.mantissa_bits : 31]
        significand, shift = normalise(m, Cat(fraction, field.any()), name)
        exponent = Signal(_EXPONENT, name=f"{name}_exponent")
        m.d.comb += exponent.eq(Cat(field[0] | ~field.any(), field[1:]) - Cat(*shift))
        return (
            significand,
            exponent,
            ~word[:31].any(),
            field.all() & ~fraction.any(),
            field.all() & fraction.any(),
        )

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
