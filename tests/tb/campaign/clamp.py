"""Small units with mutants that can be checked exhaustively."""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.tb.campaign.mutation.unit import Unit


class Clamp(wiring.Component):
    """`o` is min(i, 200), one cycle late, without the lowest bit of `i` above 127; `large` is set if `o` is 200."""

    i: In(8)
    o: Out(8)
    large: Out(1)

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.large.eq(self.o == 200)
        m.d.sync += self.o.eq(Mux(self.i > 200, 200, self.i & Mux(self.i[7], 0xFE, 0xFF)))
        return m


class Unread(wiring.Component):
    """Running sum of the inputs, two cycles late; the upper half of each register drives no output."""

    i: In(8)
    o: Out(4)

    def elaborate(self, platform):
        m = Module()
        kept, late, total = (Signal(8, name=name) for name in ("kept", "late", "total"))
        m.d.sync += [kept.eq(self.i), late.eq(kept), total.eq(total + late)]
        m.d.comb += self.o.eq(total[:4])
        return m


class Rare(wiring.Component):
    """Counter to three with a table and a memory of two words; a fourth row and unwritten data have no effect."""

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
    i: In(8)
    o: Out(8)

    def elaborate(self, platform):
        m = Module()
        m.submodules.first, m.submodules.second = first, second = Clamp(), Clamp()
        m.d.comb += [first.i.eq(self.i), second.i.eq(first.o), self.o.eq(~second.o)]
        return m


CHECKS = "tests/tb/campaign/clamp_checks.py"
HALF_SEEN = Unit("clamp", Clamp, (f"{CHECKS}::test_o_only",), cycles=4)
HARNESSED = Unit("clamp", Clamp, (f"{CHECKS}::test_all_in_harness",), cycles=4, module="clamp")
UNTESTED = Unit("clamp", Clamp, (f"{CHECKS}::test_width_without_simulation",), cycles=4)
BROKEN = Unit("clamp", Clamp, (f"{CHECKS}::test_numbers",), cycles=4)
