"""Synthesis of a whole machine as one netlist, module by module: Yosys does not finish on a whole flat core.

1. Remove logic that no instance uses, and inputs that are constant in all instances.
2. Synthesise each module once, with the modules below it as black boxes; results are cached.
3. Join the netlists into a hierarchical one, which nextpnr flattens.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from amaranth.lib import wiring
from rich.table import Table

from neuroncore_rtl.run.fpga.modules import occurrences, stub
from neuroncore_rtl.run.fpga.synthesis import (
    FAMILIES,
    Netlist,
    cache_folder,
    elaborate_unit,
    run_tool,
    synthesise,
    without_brackets,
)
from neuroncore_rtl.run.report import progress
from neuroncore_rtl.run.tables import table

__all__ = ["LUTS_OF", "black_box", "join", "largest", "replace_black_box", "whole"]

_CELL = re.compile(r"^  cell \\?(\S+) ", re.MULTILINE)
_MODULE = re.compile(r"^(?:attribute [^\n]*\n)*module \\(\S+)\n.*?^end\n", re.MULTILINE | re.DOTALL)
_FAMILY = FAMILIES["ecp5"]

_REWRITTEN = "+&scorr; &sweep; &dc2; &syn3; &syn3; &dc2; &dc2"
"""Start of ABC's scripts: merge equal nodes, and rewrite repeatedly for fewer nodes."""

SMALL = f"{_REWRITTEN}; &if -a {{C}} {{W}} {{D}} {{R}} -v; &mfs"
"""Script for modules with several instances: fewest LUTs."""

FAST = f"{_REWRITTEN}; &if {{C}} {{W}} {{D}} {{R}} -v; &mfs"
"""Script for the other modules, which the longest paths cross: fewest levels. A vector datapath would be 2 % larger."""

LOOPS = ("running_sum",)
"""Modules with several instances that use `FAST`: their slowest path is a loop, which no register can cut."""

_QUEUE = re.compile(r"memory width \d+ size (?P<places>\d+) \\(?P<name>\S+\.fifo\.storage)")
_READ = re.compile(
    r'  cell \$memrd_v2 [^\n]*\n    parameter \\MEMID "\\\\(?P<name>[^"]*)"\n'
    r"(?:    parameter [^\n]*\n)*?    parameter \\CLK_ENABLE (?P<clocked>\d)"
)

FEWEST_PLACES = 24
"""Fewest entries of a queue that is placed in block RAM."""

MOST_REGISTERED = 2
"""Most entries of a queue that is smaller as registers than as LUT memory."""

LUTS_OF = {"CCU2C": 2, "TRELLIS_DPR16X4": 6}
"""LUT4 positions that other cells occupy."""

MOST_MODULES = 12

ROUNDS = 4
"""Passes of Yosys across module borders; each removal may allow another one in the next module."""


def whole(component: wiring.Component, name: str) -> tuple[Netlist, list[dict]]:
    """Return the netlist of a component for the ECP5, and a row per module: `module`, `times` and its own cell counts.

    `name` is its top module.
    """
    modules = _prune(name, *elaborate_unit(component, name))
    inside = {module: Counter(_CELL.findall(text)) for module, text in modules.items()}
    often = occurrences(name, inside)
    stubs = {module: stub(module, text) for module, text in modules.items()}
    netlists, cells = {}, {}
    for number, (module, text) in enumerate(modules.items(), 1):
        with progress(f"{name}: Yosys, module {number} of {len(modules)}, {module}"):
            inner = (each for other, each in stubs.items() if other in inside[module])
            small = often[module] > 1 and module not in LOOPS
            netlists[module] = synthesise(module, [text, *inner], (), _FAMILY, abc=SMALL if small else FAST)
        cells[module] = netlists[module].cells
    times = occurrences(name, cells)
    rows = [{"module": module, "times": times[module], **_FAMILY.counts(cells[module])} for module in modules]
    return join(name, netlists), rows


def _prune(top: str, rtlil: Mapping[str, str], verilog: Iterable[str]) -> dict[str, str]:
    """Return the RTLIL of the modules after the removal of logic that no output depends on.

    `rtlil` has the modules that remain separate, by name; those in `verilog` are flattened.
    """
    texts = {"design.il": "\n".join(map(without_brackets, rtlil.values())), "design.v": "\n".join(verilog)}
    rounds = "opt_hier; opt -fast; wreduce; opt_clean; " * ROUNDS
    script = (
        f"read_rtlil design.il; read_verilog design.v; hierarchy -check -top {top}; proc; "
        f"setattr -mod -set keep_hierarchy 1 {' '.join(rtlil)}; flatten; opt_expr; opt_clean; {rounds}"
        "setattr -mod -unset keep_hierarchy; write_rtlil pruned.il"
    )
    with cache_folder(f"{top}-pruned", texts, script) as folder:
        if not (folder / "done").is_file():
            for name, text in texts.items():
                (folder / name).write_text(text)
            with progress(f"{top}: Yosys, removal of unused logic"):
                run_tool(folder, "yosys", "-q", "-p", script)
            (folder / "done").touch()
    text = (folder / "pruned.il").read_text()
    return {found[1]: _style_queues(without_brackets(found[0])) for found in _MODULE.finditer(text)}


def _style_queues(rtlil: str) -> str:
    """Return RTLIL with deep queues (`hdl.primitives.fifo.BufferedFifo`) as block RAM, short ones as registers.

    By default Yosys uses LUTs, because a block RAM would be almost empty. A queue never reads the entry that it writes
    in the same cycle, so the result of such a read does not matter.
    """
    clocked = {read["name"] for read in _READ.finditer(rtlil) if read["clocked"] == "1"}
    deep = {found["name"] for found in _QUEUE.finditer(rtlil) if int(found["places"]) >= FEWEST_PLACES} & clocked

    def styled(found: re.Match) -> str:
        short = int(found["places"]) <= MOST_REGISTERED
        style = "block" if found["name"] in deep else "registers" if short else None
        return f'attribute \\ram_style "{style}"\n  {found[0]}' if style else found[0]

    def apart(read: re.Match) -> str:
        return read[0].replace("COLLISION_X_MASK 1'0", f"COLLISION_X_MASK 1'{int(read['name'] in deep)}")

    return _READ.sub(apart, _QUEUE.sub(styled, rtlil))


def join(top: str, netlists: Mapping[str, Netlist]) -> Netlist:
    """Return one hierarchical netlist of modules that instantiate each other by name."""
    with cache_folder(f"{top}-whole", {name: str(netlist.folder) for name, netlist in netlists.items()}) as folder:
        if not (folder / "cells.json").is_file():
            modules = {name: netlist.module for name, netlist in netlists.items()}
            for name, module in modules.items():
                if name != top:
                    module["attributes"].pop("top", None)
            cells = {name: netlist.cells for name, netlist in netlists.items()}
            counts: Counter[str] = Counter()
            for name, times in occurrences(top, cells).items():
                counts.update({cell: times * count for cell, count in cells[name].items() if cell not in cells})
            (folder / "netlist.json").write_text(json.dumps({"creator": "Yosys", "modules": modules}))
            (folder / "cells.json").write_text(json.dumps(counts))
    return Netlist(folder)


def largest(modules: Iterable[Mapping[str, Any]]) -> Table:
    """Return the table of the modules with most LUT4 positions."""
    rows = []
    for row in modules:
        places = row["luts"] + LUTS_OF["CCU2C"] * row["carries"] + LUTS_OF["TRELLIS_DPR16X4"] * row["lutrams"]
        rows.append({**row, "places": row["times"] * places})
    counts = " | ".join(f"{heading}: {{{name}:,}}" for name, (heading, _) in _FAMILY.cells.items())
    rows = sorted(rows, key=lambda row: -row["places"])[:MOST_MODULES]
    caption = f"LUT4 positions: a CCU2C has {LUTS_OF['CCU2C']}, a DPR16X4 {LUTS_OF['TRELLIS_DPR16X4']}"
    columns = f"module: {{module}} | times: {{times:,}} | {counts} | LUT4 positions, all: {{places:,}}"
    return table("Largest modules; counts of one instance", rows, columns, caption)


def black_box(netlist: Netlist) -> str:
    """Return an empty Verilog module with the ports of a netlist."""
    ports = (
        f"{port['direction']} [{len(port['bits']) - 1}:0] \\{name} " for name, port in netlist.module["ports"].items()
    )
    return f"(* blackbox, keep *) module \\{netlist.name} ({', '.join(ports)}); endmodule\n"


def replace_black_box(around: Mapping, netlist: Netlist) -> dict:
    """Return the netlist `around`, as of `write_json`, in which another netlist replaces a black box."""
    inner = json.loads((netlist.folder / "netlist.json").read_text())["modules"]
    inner[netlist.name]["attributes"].pop("top", None)
    return {**around, "modules": {**around["modules"], **inner}}
