"""A unit that is small enough for all there is to know of its mutants: what it does with each of 256 inputs."""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.tb.campaign.mutation.unit import Unit


class Clamp(wiring.Component):
    """min(i, 200), a cycle later, without the lowest bit of an `i` above 127; `large`: `o` is 200."""

    i: In(8)
    o: Out(8)
    large: Out(1)

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.large.eq(self.o == 200)
        m.d.sync += self.o.eq(Mux(self.i > 200, 200, self.i & Mux(self.i[7], 0xFE, 0xFF)))
        return m


class Unread(wiring.Component):
    """A sum of what comes two cycles late, of which the upper half is not read, nor that of the registers before it."""

    i: In(8)
    o: Out(4)

    def elaborate(self, platform):
        m = Module()
        kept, late, total = (Signal(8, name=name) for name in ("kept", "late", "total"))
        m.d.sync += [kept.eq(self.i), late.eq(kept), total.eq(total + late)]
        m.d.comb += self.o.eq(total[:4])
        return m


class Rare(wiring.Component):
    """A count to three, over and over, with what a table says of it and what a memory of two words was given: what
    would be said of a fourth, or is given to the memory while nothing is written, means nothing."""

    i: In(8)
    o: Out(4)

    def elaborate(self, platform):
        m = Module()
        m.submodules.table = table = Memory(shape=4, depth=4, init=[1, 5, 9, 13])
        m.submodules.words = words = Memory(shape=4, depth=2, init=[])
        state, row, write, read = Signal(2), table.read_port(domain="comb"), words.write_port(), words.read_port()
        m.d.sync += state.eq(Mux(state == 2, 0, state + 1))
        m.d.comb += [
            row.addr.eq(state),
            Cat(write.en, write.addr, read.addr).eq(self.i),
            write.data.eq(Mux(write.en, self.i[3:], row.data)),
            self.o.eq(Mux(state == 3, self.i, Mux(row.data[0], row.data ^ read.data, self.i))),
        ]
        return m


class Two(wiring.Component):
    """Two clamps, one behind the other."""

    i: In(8)
    o: Out(8)

    def elaborate(self, platform):
        m = Module()
        m.submodules.first, m.submodules.second = first, second = Clamp(), Clamp()
        m.d.comb += [first.i.eq(self.i), second.i.eq(first.o), self.o.eq(~second.o)]
        return m


HERE = "tests/tb/campaign"
SEEN = Unit("clamp", Clamp, (f"{HERE}/clamp_seen.py",), cycles=4)  # with a test that looks at everything
HALF_SEEN = Unit("clamp", Clamp, (f"{HERE}/clamp_half_seen.py",), cycles=4)  # with one that does not look at `large`
HARNESSED = Unit("clamp", Clamp, (f"{HERE}/clamp_harnessed.py",), cycles=4, module="clamp")
"""With a test that looks at everything in a harness."""
UNTESTED = Unit("clamp", Clamp, (f"{HERE}/clamp_unseen.py",), cycles=4)  # with a file in which no test simulates it
BROKEN = Unit("clamp", Clamp, (f"{HERE}/clamp_broken.py",), cycles=4)  # with a test that fails
