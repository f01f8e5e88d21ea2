import re
from contextlib import nullcontext

import pytest
from amaranth import Cat, Module, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.verilog import text as verilog
from neuroncore_rtl.hdl.verilog.conversion import to_verilog


class Unit(wiring.Component):
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


def with_memory(width, granularity=None, *, enable, data=lambda unit: unit.a):
    def fill(m, unit):
        m.submodules.memory = memory = Memory(shape=width, depth=256, init=[])
        read, write = memory.read_port(), memory.write_port(granularity=granularity)
        m.d.comb += [read.addr.eq(unit.a), unit.o.eq(read.data), write.addr.eq(unit.b), write.data.eq(data(unit))]
        m.d.comb += write.en.eq(enable(unit))

    return fill


def text_of(fill) -> str:
    text = to_verilog("unit", Unit(fill))
    assert not re.search(r"\(\* (?!full_case)", text), "attributes"
    return text


def statements(text: str) -> str:
    return re.sub(r"\s+", " ", text)


def test_a_memory_is_cleared_in_one_loop():
    text = text_of(with_memory(32, enable=lambda unit: 1))
    assert len(re.findall(r"initial for \(.*\) \w+\[.*\] = 32'h0;", text)) == 1
    assert not re.search(r"^ *\w+\[\d+\] = 32'", text, re.MULTILINE)


def test_bytes_of_a_memory_are_written_in_one_assignment():
    text = statements(text_of(with_memory(8, granularity=2, enable=lambda unit: unit.b[:4])))
    bits = [f"b[{bit}] ? a[{2 * bit + 1}:{2 * bit}] : memory[b][{2 * bit + 1}:{2 * bit}]" for bit in (3, 2, 1, 0)]
    assert f"always @(posedge clk) begin if (|b) memory[b] <= {{ {', '.join(bits)} }}; end" in text
    assert "<= a[" not in text


APART = {
    "enables of two signals": (lambda unit: Cat(unit.a[0], unit.b[1], unit.a[2], unit.b[3]), "a0 b1 a2 b3", 0),
    "a part that is never written": (lambda unit: Cat(unit.b[0], 0, unit.b[2:4]), "b0 - b2 b3", 0),
    "a last part that is never written": (lambda unit: Cat(unit.b[:3], 0), "b0 b1 b2 -", 0),
    "data in another order": (lambda unit: unit.b[:4], "b0 b1 b2 b3", 4),
}
"""Cases: the enable of each part of a word, the bits of the enables, and the rotation of the data in bits."""


@pytest.mark.parametrize(("enable", "bits", "turned"), APART.values(), ids=APART)
def test_bytes_that_do_not_make_up_the_word_of_one_port_stay_apart(enable, bits, turned):
    fill = with_memory(8, granularity=2, enable=enable, data=lambda unit: unit.a.rotate_right(turned))
    text = statements(text_of(fill))
    places = [(2 * number, (2 * number + turned) % 8, bit) for number, bit in enumerate(bits.split()) if bit != "-"]
    writes = [f"if ({b[0]}[{b[1]}]) memory[b][{to + 1}:{to}] <= a[{at + 1}:{at}];" for to, at, b in places]
    assert f"begin {' '.join(writes)} end" in text


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


def one_block(m, unit, s):
    with m.If(unit.b[0]):
        m.d.comb += s.eq(unit.a)


def two_blocks(m, unit, s):
    """The second block is a single statement, which Yosys drops."""
    m.d.comb += s[:4].eq(unit.a[4:])
    one_block(m, unit, s[4:])


def no_block(m, unit, s):
    m.d.comb += s.eq(unit.a)


@pytest.mark.parametrize(("drive", "blocks"), [(one_block, 1), (two_blocks, 2), (no_block, 0)])
def test_combinational_blocks_are_triggered_by_one_register(drive, blocks):
    def fill(m, unit):
        s = Signal(8)
        drive(m, unit, s)
        m.d.comb += unit.o.eq(s)

    text = statements(text_of(fill))
    assert text.count("always @*") == text.count(r"always @* begin if (\$wake ) begin end ") == blocks
    assert text.count(r"reg \$wake ;") == text.count(r"initial \$wake <= 1'h0;") == (blocks > 0)
    assert "$auto$" not in text


MEMORIES = {
    "cleared": (8, [0] * 5),
    "signed": (signed(5), [-3, 7, -16, 0, 1]),
    "without bits": (0, [0, 0]),
    "without words": (4, []),
    "wide": (300, [1 << 299, 5]),
}
"""Shape and contents."""


@pytest.mark.parametrize(("shape", "words"), MEMORIES.values(), ids=MEMORIES)
def test_text_is_that_of_amaranth(shape, words, monkeypatch):
    def fill(m, unit):
        m.submodules.memory = memory = Memory(shape=shape, depth=len(words), init=words)
        read = memory.read_port()
        m.d.comb += [read.addr.eq(unit.a), unit.o.eq(read.data + unit.b)]

    fast = verilog.to_rtlil("unit", *verilog.elaborate(Unit(fill), None))
    monkeypatch.setattr(verilog, "faster_netlists", nullcontext)
    assert verilog.to_rtlil("unit", *verilog.elaborate(Unit(fill), None)) == fast and "$meminit_v2" in fast
