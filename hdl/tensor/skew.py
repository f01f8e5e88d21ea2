"""Delay lines: the skew at the array's edges.

A systolic array wants row r some cycles behind row 0 and gives its columns one tile behind the other; everything else
sees all partitions in lockstep. A line longer than two cycles is a small ring memory, not a shift register: one word is
written and one read per cycle, so its power and its simulation time do not grow with its length.
"""

from amaranth import Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

__all__ = ["DelayLine"]


class DelayLine(wiring.Component):
    """Delays a word by a fixed number of cycles.

    Arguments:
        width: bits of the word.
        delay: cycles, 0 and up.

    Ports:
        i: the word.
        o: the word, `delay` cycles later. Zero until the first word arrives.
    """

    SHIFTED = 2
    """Longest delay made of registers; a memory has an address and a read cycle to set up."""

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

        # The word read here is registered by the memory, so the slot written delay - 1 cycles ago is asked for; the
        # ring holds exactly these slots and the read of a slot precedes its next write by one cycle.
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
