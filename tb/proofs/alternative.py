"""riscv-formal's replacements of multiplication and division, which solvers cannot handle (RISCV_FORMAL_ALTOPS).

So the proofs cover how the pipeline transports operands and results, but not the arithmetic. Source: "Alternative
arithmetic operations" in riscv-formal's description of its interface.
"""

from amaranth import Module, Mux, Signal

from neuroncore_rtl.hdl.controller.muldiv import Divider, Multiplier
from neuroncore_rtl.hdl.controller.rvfi import RvfiCpu

__all__ = ["AlternativeCpu", "AlternativeDivider", "AlternativeMultiplier"]

MUL, MULH, MULHSU, MULHU = 0x5876_063E, 0xF658_3FB7, 0xECFB_E137, 0x949C_E5E8
DIV, DIVU, REM, REMU = 0x7F85_29EC, 0x10E8_FD70, 0x8DA6_8FA5, 0x3138_D0E1  # lower 32 bits of the published masks


class AlternativeMultiplier(Multiplier):
    """Replacement with the multiplier's ports and latency."""

    def elaborate(self, platform):
        m = Module()
        product = Signal(32)
        m.d.comb += product.eq((self.a + self.b) ^ Mux(self.a_signed, MULH, MULHU))
        with m.If(~self.high):
            m.d.comb += product.eq((self.a + self.b) ^ MUL)
        with m.Elif(self.a_signed & ~self.b_signed):
            m.d.comb += product.eq((self.a - self.b) ^ MULHSU)
        with m.If(self.enable):
            m.d.sync += self.out.eq(product)
        return m


class AlternativeDivider(Divider):
    """Replacement with the divider's ports and a shorter latency."""

    LATENCY = 2

    def elaborate(self, platform):
        m = Module()
        cycle = Signal(range(self.LATENCY + 1))
        a, b = Signal(32), Signal(32)
        mask = Mux(self.remainder, Mux(self.signed, REM, REMU), Mux(self.signed, DIV, DIVU))
        m.d.comb += [self.done.eq(cycle == self.LATENCY), self.out.eq((a - b) ^ mask)]
        with m.If(~self.valid | self.take):
            m.d.sync += cycle.eq(0)
        with m.Elif(~self.done):
            m.d.sync += [cycle.eq(cycle + 1), a.eq(self.a), b.eq(self.b)]
        return m


class AlternativeCpu(RvfiCpu):
    """The processor with both replacements."""

    _multiplier, _divider = AlternativeMultiplier, AlternativeDivider
