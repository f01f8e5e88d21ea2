"""Pulse line: a fixed delay of pulses, which a reset removes."""

from amaranth import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.primitives.delay_line import DelayLine

__all__ = ["PulseLine"]


class PulseLine(wiring.Component):
    """Fixed delay of pulses. The memory of a `DelayLine` outlives a reset, so its first `delay` outputs are ignored.

    Arguments:
        delay: cycles, at least 1.

    Ports:
        i: a pulse.
        o: the pulse of `delay` cycles ago, if there was no reset since.
    """

    i: In(1)
    o: Out(1)

    def __init__(self, delay: int):
        self.delay = delay
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        m.submodules.line = line = DelayLine(1, self.delay)
        young = Signal(range(self.delay + 1), init=self.delay)  # outputs to ignore
        m.d.comb += [line.i.eq(self.i), self.o.eq(line.o & (young == 0))]
        with m.If(young != 0):
            m.d.sync += young.eq(young - 1)
        return m
