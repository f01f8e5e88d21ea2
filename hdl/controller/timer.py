"""Machine timer: mtime and mtimecmp."""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.controller.bus import Bus
from neuroncore_rtl.spec.memory_map import TIMER_COMPARE, TIMER_NOW

__all__ = ["Timer", "is_timer"]


def is_timer(address):
    """Return whether a byte address is in a register of the timer, as a one-bit value."""
    return (address[3:] == TIMER_NOW >> 3) | (address[3:] == TIMER_COMPARE >> 3)


class Timer(wiring.Component):
    """Machine timer: mtime counts cycles since reset. mtime and mtimecmp are read and written in 32-bit halves.

    Ports:
        bus: one request per cycle, answered in the next cycle; the address must be one of the timer's. A write of less
            than a word is an error.
        time: mtime.
        interrupt: mtime >= mtimecmp, one cycle late.
    """

    bus: In(Bus())
    time: Out(64)
    interrupt: Out(1)

    def elaborate(self, platform):
        m = Module()
        compare = Signal(64, init=(1 << 64) - 1)
        is_compare, upper = self.bus.address[3:] == TIMER_COMPARE >> 3, self.bus.address[2]
        partial = ~self.bus.mask.all()
        m.d.comb += self.bus.ready.eq(1)
        m.d.sync += [
            self.time.eq(self.time + 1),
            self.interrupt.eq(self.time >= compare),
            self.bus.response.eq(self.bus.valid),
        ]
        with m.If(self.bus.valid):
            m.d.sync += self.bus.error.eq(self.bus.write & partial)
            for register, chosen in ((self.time, ~is_compare), (compare, is_compare)):
                with m.If(chosen):
                    m.d.sync += self.bus.result.eq(Mux(upper, register[32:], register[:32]))
                    with m.If(self.bus.write & ~partial):
                        lower, above = register[:32], register[32:]
                        with m.If(upper):
                            m.d.sync += register.eq(Cat(lower, self.bus.data))
                        with m.Else():
                            m.d.sync += register.eq(Cat(self.bus.data, above))
        return m
