"""Cell counts of a unit, module by module: each is synthesised once and counted once per instance.

This gives counts of machines on which Yosys would not finish in hours. Logic is not optimised across the borders of
modules, so that the sums are slightly too high.
"""

import re
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from amaranth.lib import wiring

from neuroncore_rtl.hdl.verilog.conversion import below
from neuroncore_rtl.hdl.verilog.hierarchy import ModuleLibrary
from neuroncore_rtl.run.fpga.levels import deepest
from neuroncore_rtl.run.fpga.synthesis import Family, Netlist, synthesise
from neuroncore_rtl.run.report import progress
from neuroncore_rtl.run.sim.simulation import BuildFailed

__all__ = ["by_module", "occurrences", "stub", "total"]

_HEAD = re.compile(r"^module \\(\S+)\n", re.MULTILINE)
_CELL = re.compile(r"^  cell \\?(\S+) ", re.MULTILINE)
_PORT = re.compile(r"^  wire .*?(?:input|output) \d+ .*\n", re.MULTILINE)


def by_module(component: wiring.Component, family: Family, name: str) -> list[dict[str, Any]]:
    """Return a row for each module of a component that is more than wires, the top module first.

    A row has `module`, `times` (instances), the module's own counts by the names of the family's cells, and its deepest
    logic (:func:`run.fpga.levels.deepest`). If `gates` is true, it has gates instead of LUTs, an upper bound, and no
    deepest logic; if `counted` is false, no counts.

    Arguments:
        component: the component.
        family: one of :data:`run.fpga.synthesis.FAMILIES`.
        name: of its module.

    Raises:
        MissingTool: see :func:`run.fpga.synthesis.run_tool`.
    """
    library = ModuleLibrary()
    with progress(f"{name}: elaborating"):
        modules = below(name, component, library, sources=True)
    stubs = {module: stub(module, text) for module, text in modules.items()}
    texts = [_black_box(text) for text in library.texts.values()]
    netlists: dict[str, tuple[Netlist, bool] | None] = {}
    cells: dict[str, Mapping[str, int]] = {}
    for number, (module, text) in enumerate(modules.items(), 1):
        inside = Counter(_CELL.findall(text))
        if inside.keys() <= modules.keys() and "\n    switch " not in text:
            cells[module] = inside  # only wires, on which ABC fails
            continue
        with progress(f"{name}: Yosys, {family.title}, module {number} of {len(modules)}, {module}"):
            inner = [stub for other, stub in stubs.items() if other in inside]
            found = netlists[module] = _synthesised(module, [text, *inner], texts, family)
        cells[module] = found[0].cells if found else inside
    times = occurrences(name, cells)
    return [{"module": module, "times": times[module], **_figures(found, family)} for module, found in netlists.items()]


def _figures(found: tuple[Netlist, bool] | None, family: Family) -> dict[str, Any]:
    """Return the figures of a netlist; None: unknown figures."""
    netlist, gates = found or (None, False)
    unknown = {"levels": None, "start": None, "end": None}
    counts = family.counts(netlist.cells if netlist else {})
    return {
        "gates": gates,
        "counted": bool(found),
        **counts,
        **(deepest(netlist) if netlist and not gates else unknown),
    }


def _synthesised(module: str, rtlil: list[str], verilog: list[str], family: Family) -> tuple[Netlist, bool] | None:
    """Return the netlist of a module, and whether it has gates instead of LUTs.

    ABC fails without a message on some modules that are mostly wires; gates are the fallback. Returns None if Yosys
    fails without ABC as well, as on memories with very many ports.
    """
    for gates in (False, True):
        with suppress(BuildFailed):
            return synthesise(module, rtlil, verilog, family, gates=gates), gates
    return None


def occurrences(top: str, cells: Mapping[str, Mapping[str, int]]) -> Counter[str]:
    """Return the number of instances of each module below `top`; cells: number of cells and submodules by type."""
    times: Counter[str] = Counter()
    todo = [(top, 1)]
    while todo:
        module, count = todo.pop()
        times[module] += count
        todo += [(inner, count * each) for inner, each in cells[module].items() if inner in cells]
    return times


def total(rows: list[dict[str, Any]], family: Family) -> dict[str, float]:
    """Return the sums of the counts of :func:`by_module` over all instances."""
    return {name: sum(row["times"] * row[name] for row in rows) for name in family.cells}


def stub(module: str, text: str) -> str:
    """Return a module's RTLIL with its ports and without its contents."""
    head = next(head for head in _HEAD.finditer(text) if head[1] == module)
    body = text[head.end() :].partition("\nend\n")[0]
    ports = "".join(_PORT.findall(f"{body}\n"))
    return f"attribute \\blackbox 1\nattribute \\keep 1\nmodule \\{module}\n{ports}end\n"


def _black_box(verilog: str) -> str:
    """Return Verilog with all modules as black boxes."""
    return re.sub(r"^module ", "(* blackbox, keep *) module ", verilog, flags=re.MULTILINE)
