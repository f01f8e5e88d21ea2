"""A machine as one netlist: each of its modules synthesised once, by itself, and put together again.

As a whole, Yosys would not end with a core. First it sees all modules together, and drops what no instance uses and
what is constant at all of them, across their borders; then each is synthesised with those below it as black boxes; the
netlist that comes out has modules, which nextpnr makes flat. A module that has not changed is not synthesised again.
"""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from amaranth.lib import wiring
from filelock import FileLock
from rich.table import Table

from neuroncore_rtl import SIM_BUILD
from neuroncore_rtl.hdl.verilog.conversion import below
from neuroncore_rtl.hdl.verilog.hierarchy import ModuleLibrary
from neuroncore_rtl.run.fpga.modules import occurrences, stub
from neuroncore_rtl.run.fpga.synthesis import FAMILIES, Netlist, run_tool, synthesise, versions, without_brackets
from neuroncore_rtl.run.report import progress
from neuroncore_rtl.run.tables import table

__all__ = ["LUTS_OF", "black_box", "instantiated", "join", "largest", "synthesise_whole", "whole"]

_MODULE = re.compile(r"^(?:attribute [^\n]*\n)*module \\(\S+)\n.*?^end\n", re.MULTILINE | re.DOTALL)
_CELL = re.compile(r"^  cell \\?(\S+) ", re.MULTILINE)
_FAMILY = FAMILIES["ecp5"]

_REWRITTEN = "+&scorr; &sweep; &dc2; &syn3; &syn3; &dc2; &dc2"
"""What ABC does to all modules first: it merges equal nodes, and rewrites again and again for fewer of them."""

SMALL = f"{_REWRITTEN}; &if -a {{C}} {{W}} {{D}} {{R}} -v; &mfs"
"""What it does to modules that occur several times: as few LUTs as it can."""

FAST = f"{_REWRITTEN}; &if {{C}} {{W}} {{D}} {{R}} -v; &mfs"
"""To the others, through which the longest paths go: as few levels as it can. A vector lane would take 2 % more."""

LOOPS = ("running_sum",)
"""Modules that occur several times and have their slowest path in a loop, which no register may cut: fast as well."""

_QUEUE = re.compile(r"memory width \d+ size (?P<places>\d+) \\(?P<name>\S+\.fifo\.storage)")
_READ = re.compile(
    r'  cell \$memrd_v2 [^\n]*\n    parameter \\MEMID "\\\\(?P<name>[^"]*)"\n'
    r"(?:    parameter [^\n]*\n)*?    parameter \\CLK_ENABLE (?P<clocked>\d)"
)

FEWEST_PLACES = 24
"""Of a queue that is worth block RAM."""

MOST_REGISTERED = 2
"""Places of a queue that takes less as registers than as RAM in LUTs."""

LUTS_OF = {"CCU2C": 2, "TRELLIS_DPR16X4": 6}
"""Places of a LUT4 that other cells take."""

MOST_MODULES = 12
"""That a table shows."""

ROUNDS = 4
"""Times that Yosys looks across the borders of modules: what it drops may leave more to drop a module further."""


def whole(component: wiring.Component, name: str) -> tuple[Netlist, list[dict]]:
    """Return what :func:`synthesise_whole` does of a component, as the module `name`."""
    library = ModuleLibrary()
    with progress(f"{name}: elaborating"):
        modules = below(name, component, library, sources=True)
    return synthesise_whole(name, modules, library.texts.values())


def synthesise_whole(top: str, rtlil: Mapping[str, str], verilog: Iterable[str]) -> tuple[Netlist, list[dict]]:
    """Return the netlist of a machine for the ECP5, and of each of its modules `module`, `times` and its own counts by
    the names of the family's cells.

    Arguments:
        top: name of the whole. rtlil: of it and of the modules that stay modules, by name.
        verilog: texts of others, which become parts of those that they occur in.

    Raises:
        MissingTool, BuildFailed: as :func:`run.fpga.synthesis.run_tool`.
    """
    modules = _pruned(top, rtlil, verilog)
    often = occurrences(top, {module: Counter(_CELL.findall(text)) for module, text in modules.items()})
    stubs = {module: stub(module, text) for module, text in modules.items()}
    netlists, cells = {}, {}
    for number, (module, text) in enumerate(modules.items(), 1):
        inside = set(_CELL.findall(text))
        with progress(f"{top}: Yosys, module {number} of {len(modules)}, {module}"):
            inner = (each for other, each in stubs.items() if other in inside)
            small = often[module] > 1 and module not in LOOPS
            netlists[module] = synthesise(module, [text, *inner], (), _FAMILY, abc=SMALL if small else FAST)
        cells[module] = netlists[module].cells
    times = occurrences(top, cells)
    rows = [{"module": module, "times": times[module], **_FAMILY.counts(cells[module])} for module in modules]
    return join(top, netlists), rows


def _pruned(top: str, rtlil: Mapping[str, str], verilog: Iterable[str]) -> dict[str, str]:
    """Return the RTLIL of modules in which there is nothing that no instance of them uses."""
    texts = {"design.il": "\n".join(map(without_brackets, rtlil.values())), "design.v": "\n".join(verilog)}
    rounds = "opt_hier; opt -fast; wreduce; opt_clean; " * ROUNDS
    script = (
        f"read_rtlil design.il; read_verilog design.v; hierarchy -check -top {top}; proc; "
        f"setattr -mod -set keep_hierarchy 1 {' '.join(rtlil)}; flatten; opt_expr; opt_clean; {rounds}"
        "setattr -mod -unset keep_hierarchy; write_rtlil pruned.il"
    )
    folder = _folder(f"{top}-pruned", texts, script)
    with FileLock(folder / "lock"):
        if not (folder / "done").is_file():
            for name, text in texts.items():
                (folder / name).write_text(text)
            with progress(f"{top}: Yosys, what no module uses"):
                run_tool(folder, "yosys", "-q", "-p", script)
            (folder / "done").touch()
    text = (folder / "pruned.il").read_text()
    return {found[1]: _queues_in_place(without_brackets(found[0])) for found in _MODULE.finditer(text)}


def _queues_in_place(rtlil: str) -> str:
    """Return RTLIL in which queues of :class:`hdl.primitives.fifo.BufferedFifo` that are worth it are block RAM, and
    short ones registers.

    Left alone, Yosys takes LUTs, as a block would be almost empty. A queue never reads the place that it writes, so
    nothing has to be done for what a block reads then.
    """
    clocked = {read["name"] for read in _READ.finditer(rtlil) if read["clocked"] == "1"}
    deep = {found["name"] for found in _QUEUE.finditer(rtlil) if int(found["places"]) >= FEWEST_PLACES} & clocked

    def styled(found: re.Match) -> str:
        short = int(found["places"]) <= MOST_REGISTERED
        style = "block" if found["name"] in deep else "registers" if short else None
        return f'attribute \\ram_style "{style}"\n  {found[0]}' if style else found[0]

    rtlil = _QUEUE.sub(styled, rtlil)
    apart = "COLLISION_X_MASK 1'1"
    return _READ.sub(
        lambda read: read[0].replace("COLLISION_X_MASK 1'0", apart) if read["name"] in deep else read[0], rtlil
    )


def _folder(label: str, *parts: object) -> Path:
    key = hashlib.sha256(json.dumps([*parts, versions()]).encode()).hexdigest()[:16]
    folder = SIM_BUILD / "synth" / f"{label}-{key}"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def join(top: str, netlists: Mapping[str, Netlist]) -> Netlist:
    """Return one netlist of modules, each of which instantiates others by their names."""
    folder = _folder(f"{top}-whole", {name: str(netlist.folder) for name, netlist in netlists.items()})
    with FileLock(folder / "lock"):
        if not (folder / "cells.json").is_file():
            modules = {name: netlist.module for name, netlist in netlists.items()}
            for name, module in modules.items():
                if name != top:
                    module["attributes"].pop("top", None)
            cells = {name: netlist.cells for name, netlist in netlists.items()}
            counts: dict[str, int] = {}
            for name, times in occurrences(top, cells).items():
                for cell, count in cells[name].items():
                    if cell not in cells:
                        counts[cell] = counts.get(cell, 0) + times * count
            (folder / "netlist.json").write_text(json.dumps({"creator": "Yosys", "modules": modules}))
            (folder / "cells.json").write_text(json.dumps(counts))
    return Netlist(folder)


def largest(modules: Iterable[Mapping[str, Any]]) -> Table:
    """Return the table of those modules of :func:`synthesise_whole` that take most places of LUT4."""
    rows = []
    for row in modules:
        places = row["luts"] + LUTS_OF["CCU2C"] * row["carries"] + LUTS_OF["TRELLIS_DPR16X4"] * row["lutrams"]
        rows.append({**row, "places": row["times"] * places})
    counts = " | ".join(f"{heading}: {{{name}:,}}" for name, (heading, _) in _FAMILY.cells.items())
    rows = sorted(rows, key=lambda row: -row["places"])[:MOST_MODULES]
    caption = f"places: of LUT4, a CCU2C takes {LUTS_OF['CCU2C']} and a DPR16X4 {LUTS_OF['TRELLIS_DPR16X4']}"
    columns = f"module: {{module}} | times: {{times:,}} | {counts} | places, all: {{places:,}}"
    return table("The modules that take most, each once", rows, columns, caption)


def black_box(netlist: Netlist) -> str:
    """Return the Verilog of a module with the ports of a netlist and nothing in it, for what is around it."""
    ports = (
        f"{port['direction']} [{len(port['bits']) - 1}:0] \\{name} " for name, port in netlist.module["ports"].items()
    )
    return f"(* blackbox, keep *) module \\{netlist.name} ({', '.join(ports)}); endmodule\n"


def instantiated(around: Mapping, netlist: Netlist) -> dict:
    """Return a netlist, as `write_json` describes it, with another in the place of its black box.

    Arguments:
        around: what instantiates the black box. netlist: what is in its place.
    """
    inner = json.loads((netlist.folder / "netlist.json").read_text())["modules"]
    inner[netlist.name]["attributes"].pop("top", None)
    return {**around, "modules": {**around["modules"], **inner}}
