from contextlib import nullcontext

import pytest
from amaranth import signed
from amaranth.lib.memory import Memory

from neuroncore_rtl.hdl.verilog import text
from tests.hdl.verilog.test_text import Unit

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

    fast = text.to_rtlil("unit", *text.elaborate(Unit(fill), None))
    monkeypatch.setattr(text, "faster_netlists", nullcontext)
    assert text.to_rtlil("unit", *text.elaborate(Unit(fill), None)) == fast and "$meminit_v2" in fast
