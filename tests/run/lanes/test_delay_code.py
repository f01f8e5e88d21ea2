"""Delay lines of a block: recognised among memories like them, and equal to the modules."""

import pytest
from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.primitives.delay_line import DelayLine
from neuroncore_rtl.hdl.verilog.conversion import below
from neuroncore_rtl.run.lanes.delay_code import take_delay_lines
from neuroncore_rtl.run.lanes.extraction import netlists
from neuroncore_rtl.run.lanes.netlist import LanesNetlist
from tests.run.lanes.core_blocks import Block
from tests.run.lanes.test_blocks import counts

DELAYS = (1, 2, 3, 4, 5, 9, 16, 17, 18, 33)

WIDTHS = {"a": 25, "b": 1, "c": 5, "d": 70, "e": 32}
"""Fields of a word; those of at most 32 bits together share a field of the ring."""

OTHERS = (
    "writes at times",
    "counts at times",
    "has no reset",
    "jumps at times",
    "is larger",
    "reads at times",
    "starts full",
)
"""Memories that are no delay lines, each for one reason."""


class Lines(wiring.Component):
    """Delay lines of several lengths, and a memory for each of `OTHERS`; `o` has the words of all."""

    def __init__(self):
        words = len(DELAYS) + len(OTHERS)
        super().__init__({**{name: In(width) for name, width in WIDTHS.items()}, "on": In(1), "o": Out(133 * words)})

    def elaborate(self, platform):
        m = Module()
        word = Cat(*(getattr(self, name) for name in WIDTHS))
        found = []
        for delay in DELAYS:
            m.submodules[f"line{delay}"] = line = DelayLine(len(word), delay)
            m.d.comb += line.i.eq(word ^ delay)
            found.append(line.o)
        for other in OTHERS:
            size = 6
            m.submodules[f"memory_{other.replace(' ', '_')}"] = memory = Memory(
                shape=len(word), depth=size + 2 * (other == "is larger"), init=[5] if other == "starts full" else []
            )
            read, write = memory.read_port(), memory.write_port()
            slot = Signal(
                range(size), reset_less=other in ("has no reset", "jumps at times"), name=other.replace(" ", "_")
            )
            with m.If(self.on | (other != "counts at times")):
                m.d.sync += slot.eq(Mux(slot == size - 1, 0, slot + 1))
            with m.If(self.on & (other == "jumps at times")):
                m.d.sync += slot.eq(2)
            m.d.comb += [
                read.addr.eq(slot),
                write.addr.eq(slot),
                write.data.eq(word),
                write.en.eq(self.on | (other != "writes at times")),
                read.en.eq(self.on | (other != "reads at times")),
            ]
            found.append(read.data)
        registered = Signal.like(self.o)
        m.d.sync += registered.eq(Cat(*found))
        m.d.comb += self.o.eq(registered)
        return m


@pytest.fixture(scope="module")
def block() -> Block:
    return Block("delay_lines", Lines(), ("no_lane_",))


def test_delay_lines_alone_are_taken(block):
    modules = netlists(block.name, block.of, below(block.name, block.component))
    netlist = LanesNetlist.read(block.name, modules, lane=False)
    memories, registers = len(netlist.memories), len(netlist.registers)
    taken = take_delay_lines(netlist)
    assert sorted(taken.values()) == [delay - 1 for delay in DELAYS if delay > DelayLine.SHIFTED]
    assert len(netlist.memories) == memories - len(taken) == len(OTHERS)
    assert registers - len(netlist.registers) == len(taken), "their counters are removed"
    assert {instance.module for instance in netlist.instances.values()} == {"delay_31_32_32_6_32"}


def test_delay_lines_show_what_the_modules_show(block):
    result = counts(block, 20_000)
    assert result["wrong"] == 0
    assert result["cycles"] == 20_000
