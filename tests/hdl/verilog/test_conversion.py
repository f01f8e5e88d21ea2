import os
import signal
from functools import partial

import pytest
from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.verilog import text as verilog
from neuroncore_rtl.hdl.verilog.conversion import Irreplaceable, to_verilog
from neuroncore_rtl.hdl.verilog.forks import Forks
from neuroncore_rtl.hdl.verilog.hierarchy import lanes, shared


class Lane(wiring.Component):
    def __init__(self, width: int):
        super().__init__({"i": In(width), "o": Out(width)})

    def elaborate(self, platform):
        m = Module()
        m.d.sync += self.o.eq(self.i)
        return m


class Lanes(wiring.Component):
    i: In(8)
    o: Out(8)

    def elaborate(self, platform):
        m = Module()
        for part in (slice(0, 4), slice(4, 8)):
            lane = shared(m, f"lane{part.start}", "lane_4", partial(Lane, 4), platform)
            m.d.comb += [lane.i.eq(self.i[part]), self.o[part].eq(lane.o)]
        return m


class Top(wiring.Component):
    i: In(8)
    o: Out(8)

    def elaborate(self, platform):
        m = Module()
        first = shared(m, "first", "lane_8", partial(Lane, 8), platform)
        block = lanes(m, "block", "two_lanes", Lanes, platform, of=("lane_",))
        m.d.comb += [first.i.eq(self.i), block.i.eq(first.o), self.o.eq(block.o)]
        return m


def modules(text: str) -> list[str]:
    return [line.split("(")[0].removeprefix("module ") for line in text.splitlines() if line.startswith("module ")]


class Shelf(dict):
    def get(self, module, build, replaced):
        return super().get((module, replaced, repr(build)))

    def put(self, module, build, text, replaced):
        self[module, replaced, repr(build)] = text


def test_modules_are_converted_once_and_those_in_the_store_not_again():
    shelf = Shelf()
    first = to_verilog("top", Top(), store=shelf)
    assert sorted(modules(first)) == ["lane_4", "lane_8", "top", "two_lanes"] and modules(first)[-1] == "top"
    assert to_verilog("top", Top()) == first
    assert sorted(module for module, *_ in shelf) == ["lane_4", "lane_8", "two_lanes"]
    key = next(key for key in shelf if key[0] == "lane_4")
    shelf[key] = "// kept\n"
    second = to_verilog("top", Top(), store=shelf)
    assert "// kept" in second and sorted(modules(second)) == ["lane_8", "top", "two_lanes"]


def test_a_block_is_replaced_with_what_is_below_it_and_stored_apart_from_it():
    def replaced(name, of, texts):
        return f"module {name};\n// {of} {sorted(texts)}\nendmodule"

    shelf = Shelf()
    texts = [to_verilog("top", Top(), store=shelf, replaced=how) for how in (replaced, None, replaced)]
    assert [sorted(modules(text)) for text in texts[:2]] == [
        ["lane_8", "top", "two_lanes;"], ["lane_4", "lane_8", "top", "two_lanes"]
    ]  # fmt: skip
    assert texts[2] == texts[0] and "// ('lane_',) ['lane_4', 'two_lanes']" in texts[0]
    assert sorted(module for module, block, _ in shelf if block) == ["two_lanes"]


def test_an_irreplaceable_block_is_complete_and_reported_each_time(capsys):
    def replaced(name, of, texts):
        raise Irreplaceable(f"{name} is too beautiful")

    shelf = Shelf()
    for _ in range(2):
        text = to_verilog("top", Top(), replaced=replaced, store=shelf)
        assert sorted(modules(text)) == ["lane_4", "lane_8", "top", "two_lanes"]
        assert capsys.readouterr().err == "two_lanes is too beautiful\n"


def test_the_text_of_a_module_is_the_same_whatever_is_converted_with_it(monkeypatch):
    netlists = [
        verilog.to_rtlil(name, *verilog.elaborate(unit, None)) for name, unit in (("a", Lane(4)), ("b", Lane(8)))
    ]
    together = verilog.verilog_text(netlists)
    assert together == [text for netlist in netlists for text in verilog.verilog_text([netlist])]
    monkeypatch.setattr(verilog, "TOGETHER", len(netlists[0]) - 1)
    assert verilog.verilog_text([*netlists, netlists[0]]) == [*together, together[0]]


def test_forks_return_results_and_raise_errors():
    def double(number):
        if number == 3:
            raise KeyError("three")
        if number == 4:
            os.kill(os.getpid(), signal.SIGKILL)
        return 2 * number

    with Forks() as forks:
        for number in range(6):
            forks.submit(f"call {number}", double, number)
        results = dict(forks)
    assert [results[f"call {number}"]() for number in (0, 1, 2, 5)] == [0, 2, 4, 10]
    with pytest.raises(KeyError, match="three"):
        results["call 3"]()
    with pytest.raises(RuntimeError, match="call 4: its process ended with status -9"):
        results["call 4"]()


def test_forks_join_pending_calls(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1})

    def double(numbers):
        if (5,) in numbers:
            raise KeyError("five")
        return [(2 * number, len(numbers)) for (number,) in numbers]

    with Forks() as forks:
        for number in range(40):
            forks.submit(str(number), double, 100 + number, joined=True)
        forks.submit("alone", str, 7)
        results = {name: result() for name, result in forks}
    assert results.pop("alone") == "7"
    assert {name: doubled for name, (doubled, _) in results.items()} == {str(n): 2 * (100 + n) for n in range(40)}
    assert max(together for _, together in results.values()) > 1
    with Forks() as forks:
        for number in (5, 6):
            forks.submit(str(number), double, number, joined=True)
        errors = dict(forks)
    with pytest.raises(KeyError, match="five"):
        errors["5"]()
