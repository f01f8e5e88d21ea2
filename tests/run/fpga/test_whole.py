"""Assembly of a netlist from modules: cell counts, black boxes, unused outputs."""

import json

import pytest
from amaranth import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.primitives.fifo import BufferedFifo, Fifo
from neuroncore_rtl.hdl.verilog.hierarchy import shared
from neuroncore_rtl.run.fpga import synthesis, whole
from neuroncore_rtl.run.fpga.synthesis import Netlist, without_brackets


def netlist(folder, name, cells, attributes=()):
    folder.mkdir()
    module = {
        "attributes": dict.fromkeys(attributes, 1),
        "ports": {"clk": {"direction": "input", "bits": [2]}, "out": {"direction": "output", "bits": [3, 4]}},
        "cells": {f"{cell}{n}": {"type": cell} for cell, count in cells.items() for n in range(count)},
    }
    (folder / "netlist.json").write_text(json.dumps({"modules": {name: module}}))
    (folder / "cells.json").write_text(json.dumps(cells))
    return Netlist(folder)


@pytest.fixture
def parts(monkeypatch, tmp_path):
    monkeypatch.setattr(synthesis, "SIM_BUILD", tmp_path / "made")
    cells = {"top": {"LUT4": 1, "lane": 2}, "lane": {"LUT4": 10, "bank": 3}, "bank": {"DP16KD": 1}}
    return {name: netlist(tmp_path / name, name, of, ("top",)) for name, of in cells.items()}


def test_cells_count_as_often_as_their_module_occurs(parts):
    joined = whole.join("top", parts)
    assert joined.cells == {"LUT4": 21, "DP16KD": 6}
    modules = json.loads((joined.folder / "netlist.json").read_text())["modules"]
    assert [name for name, module in modules.items() if "top" in module["attributes"]] == ["top"] == [joined.name]


def test_a_netlist_takes_the_place_of_its_black_box(parts):
    assert "module \\top (input [0:0] \\clk , output [1:0] \\out );" in whole.black_box(parts["top"])
    made = whole.replace_black_box({"creator": "x", "modules": {"pads": {}, "top": {}}}, parts["top"])
    assert made["modules"].keys() == {"pads", "top"} and made["modules"]["top"]["cells"]
    assert "top" not in made["modules"]["top"]["attributes"]


def test_names_have_no_brackets_and_slices_keep_theirs():
    rtlil = "wire width 8 \\words[0].data\nconnect \\words[0].data \\words [15:8]\n"
    assert without_brackets(rtlil) == "wire width 8 \\words<0>.data\nconnect \\words<0>.data \\words [15:8]\n"


class Queues(wiring.Component):
    """Deep and shallow queues in clocked memory, and two queues in memory without a clocked read port."""

    i: In(stream.Signature(24))
    o: Out(stream.Signature(24))

    def elaborate(self, platform):
        m = Module()
        before = wiring.flipped(self.i)
        kinds = {"many": BufferedFifo(24, 40), "few": BufferedFifo(24, 8), "late": Fifo(24, 40), "two": Fifo(24, 2)}
        for name, queue in kinds.items():
            m.submodules[name] = queue
            wiring.connect(m, before, queue.i)
            before = queue.o
        wiring.connect(m, before, wiring.flipped(self.o))
        return m


@pytest.mark.slow
def test_deep_queues_of_clocked_memory_are_block_ram_and_short_ones_registers():
    made, _ = whole.whole(Queues(), "queues")
    kinds = {kind: {name for name, cell in made.module["cells"].items() if cell["type"] == kind} for kind in made.cells}
    assert kinds["DP16KD"] and all(name.startswith("many.") for name in kinds["DP16KD"])
    assert {name.split(".")[0] for name in kinds["TRELLIS_DPR16X4"]} == {"few", "late"}


class Twice(wiring.Component):
    out: Out(8)

    def elaborate(self, platform):
        m = Module()
        first, second = (shared(m, f"counter{n}", "counter", Counter, platform) for n in range(2))
        m.d.comb += [first.step.eq(1), second.step.eq(1), self.out.eq(first.count + second.count)]
        return m


class Counter(wiring.Component):
    step: In(8)
    count: Out(8)
    unread: Out(32)

    def elaborate(self, platform):
        m = Module()
        kept = Signal(32)
        m.d.sync += [self.count.eq(self.count + self.step), kept.eq(kept + self.step)]
        m.d.comb += self.unread.eq(kept)
        return m


@pytest.mark.slow
def test_what_no_module_reads_is_not_there():
    made, modules = whole.whole(Twice(), "twice")
    rows = {row["module"]: row for row in modules}
    assert rows["counter"]["times"] == 2 and rows["counter"]["registers"] == 8
    assert made.cells["TRELLIS_FF"] == 16
