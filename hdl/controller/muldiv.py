"""M extension: pipelined multiplier and one-bit-per-cycle divider."""

from amaranth import Cat, Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Divider", "Multiplier"]


class Multiplier(wiring.Component):
    """Multiplier: one half of the 64-bit product, `LATENCY` cycles after its operands, one product per cycle.

    The first cycle computes four products of half words, which fit the multipliers of FPGAs; the second adds them.

    Ports:
        enable: the operands are accepted at the end of this cycle.
        a, b: operands.
        a_signed, b_signed: the operand is in two's complement; 0: unsigned.
        high: `out` is the upper half of the product; 0: the lower half.
        out: result, held until the next operands are accepted.
    """

    LATENCY = 1
    """Cycles from the operands to `out`."""

    enable: In(1)
    a: In(32)
    b: In(32)
    a_signed: In(1)
    b_signed: In(1)
    high: In(1)
    out: Out(32)

    def elaborate(self, platform):
        m = Module()
        a_low, b_low = self.a[:16], self.b[:16]
        a_high = Cat(self.a[16:], self.a[31] & self.a_signed).as_signed()
        b_high = Cat(self.b[16:], self.b[31] & self.b_signed).as_signed()
        low = Signal(32, reset_less=True)
        cross_a = Signal(signed(33), reset_less=True)
        cross_b = Signal(signed(33), reset_less=True)
        top = Signal(32, reset_less=True)
        high = Signal(reset_less=True)
        with m.If(self.enable):
            m.d.sync += [
                low.eq(a_low * b_low),
                cross_a.eq(a_high * b_low),
                cross_b.eq(a_low * b_high),
                top.eq(a_high * b_high),
                high.eq(self.high),
            ]
        middle = Signal(signed(34))
        upper = Signal(48)
        m.d.comb += [
            middle.eq(cross_a + cross_b),
            upper.eq(Cat(low[16:], top) + middle),
            self.out.eq(Mux(high, upper[16:], Cat(low[:16], upper[:16]))),
        ]
        return m


class Divider(wiring.Component):
    """Divider: quotient or remainder, rounded towards zero, by restoring division of the magnitudes.

    Division by zero gives a quotient of all ones and the dividend as remainder. -2**31 / -1 wraps to -2**31, remainder
    0.

    Ports:
        valid: the operands are valid, held until the result is taken; 0 before that aborts the division.
        a, b: dividend and divisor.
        signed: the operands are in two's complement; 0: unsigned.
        remainder: `out` is the remainder; 0: the quotient.
        done: `out` is the result; `LATENCY` cycles after `valid`.
        take: the result is consumed at the end of this cycle.
    """

    LATENCY = 33
    """Cycles from `valid` to `done`: one for the magnitudes and one per bit."""

    valid: In(1)
    a: In(32)
    b: In(32)
    signed: In(1)
    remainder: In(1)
    done: Out(1)
    take: In(1)
    out: Out(32)

    def elaborate(self, platform):
        m = Module()
        cycle = Signal(range(self.LATENCY + 1))
        divisor = Signal(32, reset_less=True)
        rest = Signal(32, reset_less=True)
        quotient = Signal(32, reset_less=True)
        negative = Signal(reset_less=True)
        m.d.comb += self.done.eq(cycle == self.LATENCY)

        a_negative = self.signed & self.a[31]
        b_negative = self.signed & self.b[31]
        shifted = Signal(33)
        difference = Signal(33)
        fits = ~difference[32]
        m.d.comb += [shifted.eq(Cat(quotient[31], rest)), difference.eq(shifted - divisor)]
        with m.If(~self.valid | self.take):
            m.d.sync += cycle.eq(0)
        with m.Elif(~self.done):
            m.d.sync += cycle.eq(cycle + 1)
            with m.If(cycle == 0):
                m.d.sync += [
                    quotient.eq(Mux(a_negative, -self.a, self.a)),
                    divisor.eq(Mux(b_negative, -self.b, self.b)),
                    rest.eq(0),
                    negative.eq(Mux(self.remainder, a_negative, (a_negative ^ b_negative) & self.b.any())),
                ]
            with m.Else():
                m.d.sync += [
                    quotient.eq(Cat(fits, quotient)),
                    rest.eq(Mux(fits, difference, shifted)),
                ]

        magnitude = Signal(32)
        m.d.comb += [
            magnitude.eq(Mux(self.remainder, rest, quotient)),
            self.out.eq(Mux(negative, -magnitude, magnitude)),
        ]
        return m
