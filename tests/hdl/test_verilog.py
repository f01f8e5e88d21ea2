# amaranth: UnusedElaboratable=no

"""What is rewritten in the Verilog of the pinned Amaranth and Yosys: the pattern is met, and nothing of it is left."""

import re

from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.hierarchy import to_verilog


class Unit(wiring.Component):
    """A component of a function that fills a module; its ports are `a`, `b` of 8 bits and `o` of 32."""

    a: In(8)
    b: In(8)
    o: Out(32)

    def __init__(self, fill):
        self.fill = fill
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        self.fill(m, self)
        return m


def text_of(fill) -> str:
    return to_verilog("unit", Unit(fill))


def statements(text: str) -> str:
    """Return Verilog with a blank for each run of blanks."""
    return re.sub(r"\s+", " ", text)


def test_a_memory_is_cleared_in_one_loop():
    def fill(m, unit):
        m.submodules.memory = memory = Memory(shape=32, depth=16, init=[])
        read, write = memory.read_port(), memory.write_port()
        m.d.comb += [read.addr.eq(unit.a), unit.o.eq(read.data), write.addr.eq(unit.b), write.data.eq(unit.a)]
        m.d.comb += write.en.eq(1)

    text = text_of(fill)
    assert len(re.findall(r"initial for \(.*\) \w+\[.*\] = 32'h0;", text)) == 1
    assert not re.search(r"^ *\w+\[\d+\] = 32'", text, re.MULTILINE)


def test_contents_of_a_memory_stay():
    def fill(m, unit):
        m.submodules.memory = memory = Memory(shape=32, depth=4, init=[3, 0, 5, 0])
        read = memory.read_port()
        m.d.comb += [read.addr.eq(unit.a), unit.o.eq(read.data)]

    text = text_of(fill)
    assert "initial for" not in text
    assert re.search(r"\[2\] = 32'(d5|h0*5);", text)


def test_a_case_has_a_default():
    def fill(m, unit):
        with m.Switch(unit.a[:2]):
            for value in range(4):
                with m.Case(value):
                    m.d.comb += unit.o.eq(unit.b + value)

    text = text_of(fill)
    cases = len(re.findall(r"\bcasez? ", text))
    assert cases >= 1 and len(re.findall(r"^ *default:", text, re.MULTILINE)) == cases


def test_operands_have_the_width_of_their_operation():
    def fill(m, unit):
        m.d.comb += unit.o.eq((unit.a + unit.b[:3]) ^ (unit.a.as_signed() - unit.b))

    text = text_of(fill)
    assert re.search(r"a \+ \{ 5'h00, b\[2:0\] \}", statements(text)) or "6'h00, b[2:0]" in statements(text)


def test_nothing_is_said_of_how_the_text_came_to_be():
    def fill(m, unit):
        m.d.sync += unit.o.eq(unit.a + unit.b)

    assert "(*" not in text_of(fill)
