"""Delay line: a fixed delay of a word.

A delay of more than two cycles is a ring memory, not a shift register: it writes and reads one word per cycle, so power
and simulation time are independent of its length.
"""

from amaranth import Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

__all__ = ["DelayLine"]


class DelayLine(wiring.Component):
    """Fixed delay of a word.

    Arguments:
        width: bits of the word.
        delay: cycles, 0 or more.

    Ports:
        i: the word.
        o: the word of `delay` cycles ago; after a reset zero until the first word arrives.
    """

    SHIFTED = 2
    """Longest delay made of registers; a memory needs an address and a read cycle."""

    def __init__(self, width: int, delay: int):
        if delay < 0:
            raise ValueError(f"delay must be at least 0, not {delay!r}")
        self.width = width
        self.delay = delay
        super().__init__({"i": In(width), "o": Out(width)})

    def elaborate(self, platform):
        m = Module()
        if self.delay <= self.SHIFTED:
            value: Value = self.i
            for stage in range(self.delay):
                register = Signal(self.width, name=f"stage{stage}")
                m.d.sync += register.eq(value)
                value = register
            m.d.comb += self.o.eq(value)
            return m

        # The memory registers its output, so the read address is the slot written delay - 1 cycles ago. The ring has
        # that many slots: each is read one cycle before it is overwritten.
        slots = self.delay - 1
        m.submodules.memory = memory = Memory(shape=self.width, depth=slots, init=[])
        read, write = memory.read_port(), memory.write_port()
        slot = Signal(range(slots))
        m.d.sync += slot.eq(slot + 1)
        with m.If(slot == slots - 1):
            m.d.sync += slot.eq(0)
        m.d.comb += [
            write.addr.eq(slot),
            write.data.eq(self.i),
            write.en.eq(1),
            read.addr.eq(slot),
            self.o.eq(read.data),
        ]
        return m
