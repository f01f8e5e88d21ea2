"""Cell counts of a unit, module by module: each is synthesised once and counted per instance.

Yosys would not finish in hours on whole machines. Logic is not optimised across modules, so sums are slightly high.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, cast

from amaranth.lib import wiring

from neuroncore_rtl.run.fpga.paths import arrivals, start_of
from neuroncore_rtl.run.fpga.synthesis import Family, Netlist, elaborate_unit, synthesise
from neuroncore_rtl.run.report import progress
from neuroncore_rtl.run.sim.simulation import BuildFailed

__all__ = ["by_module", "deepest", "occurrences", "stub", "total"]

_HEAD = re.compile(r"^module \\(\S+)\n", re.MULTILINE)
_CELL = re.compile(r"^  cell \\?(\S+) ", re.MULTILINE)
_PORT = re.compile(r"^  wire .*?(?:input|output) \d+ .*\n", re.MULTILINE)

LOGIC = ("LUT", "MUXF", "INV", "CARRY", "DSP48E2")
"""Prefixes of combinational cells."""

_REGISTERS = ("AREG", "BREG", "MREG", "PREG")
"""Parameters with the number of a multiplier's registers."""


def by_module(component: wiring.Component, family: Family, name: str) -> list[dict[str, Any]]:
    """Return a row for each module of a component that is more than wires, the top module `name` first.

    A row has `module`, `times` (instances), the module's own counts by the names of the family's cells, and its deepest
    logic (`deepest`). With `gates` it has gates instead of LUTs, an upper bound, and no deepest logic; without
    `counted`, no counts. Raises as `run.fpga.synthesis.run_tool`.
    """
    modules, verilog = elaborate_unit(component, name)
    stubs = {module: stub(module, text) for module, text in modules.items()}
    texts = [re.sub(r"^module ", "(* blackbox, keep *) module ", text, flags=re.MULTILINE) for text in verilog]
    netlists: dict[str, tuple[Netlist, bool] | None] = {}
    cells: dict[str, Mapping[str, int]] = {}
    for number, (module, text) in enumerate(modules.items(), 1):
        inside = Counter(_CELL.findall(text))
        if inside.keys() <= modules.keys() and "\n    switch " not in text:
            cells[module] = inside  # only wires, on which ABC fails
            continue
        with progress(f"{name}: Yosys, {family.title}, module {number} of {len(modules)}, {module}"):
            inner = [stub for other, stub in stubs.items() if other in inside]
            found = netlists[module] = _synthesise_one(module, [text, *inner], texts, family)
        cells[module] = found[0].cells if found else inside
    times = occurrences(name, cells)
    return [{"module": module, "times": times[module], **_figures(found, family)} for module, found in netlists.items()]


def _figures(found: tuple[Netlist, bool] | None, family: Family) -> dict[str, Any]:
    """Return a module's figures for `by_module`; `found` is None if Yosys failed: then the figures are unknown."""
    netlist, gates = found or (None, False)
    path: dict[str, Any] = deepest(netlist) if netlist and not gates else dict.fromkeys(("levels", "start", "end"))
    return {"gates": gates, "counted": bool(found), **family.counts(netlist.cells if netlist else {}), **path}


def _synthesise_one(module: str, rtlil: list[str], verilog: list[str], family: Family) -> tuple[Netlist, bool] | None:
    """Return the netlist of a module, and whether it has gates instead of LUTs.

    ABC fails silently on some modules that are mostly wires; gates are the fallback. Returns None if Yosys fails
    without ABC as well, as on memories with very many ports.
    """
    for gates in (False, True):
        with suppress(BuildFailed):
            return synthesise(module, rtlil, verilog, family, gates=gates), gates
    return None


def occurrences(top: str, cells: Mapping[str, Mapping[str, int]]) -> Counter[str]:
    """Return the number of instances of each module below `top`; `cells` has the instances in each module by type."""
    times: Counter[str] = Counter()
    todo = [(top, 1)]
    while todo:
        module, count = todo.pop()
        times[module] += count
        todo += [(inner, count * each) for inner, each in cells[module].items() if inner in cells]
    return times


def total(rows: list[dict[str, Any]], family: Family) -> dict[str, float]:
    """Return the resources of a whole design, from the rows of `by_module`."""
    return {name: sum(row["times"] * row[name] for row in rows) for name in family.cells}


def stub(module: str, text: str) -> str:
    """Return the RTLIL of a black box with the ports of a module."""
    head = next(head for head in _HEAD.finditer(text) if head[1] == module)
    body = text[head.end() :].partition("\nend\n")[0]
    ports = "".join(_PORT.findall(f"{body}\n"))
    return f"attribute \\blackbox 1\nattribute \\keep 1\nmodule \\{module}\n{ports}end\n"


def deepest(netlist: Netlist) -> dict[str, Any]:
    """Return the longest path between registers, memories, ports and black boxes, a substitute for the critical path.

    The result is its `levels`, one per combinational cell or carry chain, and the signals at `start` and `end`, None
    without a name in the source.
    """
    cells = netlist.module["cells"]
    logic = [cell for cell in cells.values() if _is_logic(cell)]
    drivers = {bit: cell for cell in logic for _, bit in _bits(cell, "output")}
    carries = {bit for bit, cell in drivers.items() if cell["type"].startswith("CARRY")}
    depth, before = arrivals(
        (bit, reached, not (port == "CI" and bit in carries))
        for cell in logic
        for port, bit in _bits(cell, "input")
        for _, reached in _bits(cell, "output")
    )
    if not depth:
        return {"levels": 0, "start": None, "end": None}
    last = max(depth, key=depth.__getitem__)
    reached = {bit for _, bit in _bits(drivers[last], "output")}
    ends = (cell for cell in cells.values() if not _is_logic(cell) and reached & set(cell["connections"].get("D", [])))
    registers = (cell["connections"]["Q"][0] for cell in ends if "Q" in cell["connections"])
    names = cast(Mapping[Any, Any], netlist.signals)
    end = next((bit for bit in (*registers, *reached) if bit in names), None)
    return {"levels": int(depth[last]), "start": names.get(start_of(last, before, {})), "end": names.get(end)}


def _is_logic(cell: Mapping) -> bool:
    if not cell["type"].startswith(LOGIC):
        return False
    return not any(int(str(cell["parameters"].get(name, "0")), 2) for name in _REGISTERS)


def _bits(cell: Mapping, direction: str) -> Iterator[tuple[str, int]]:
    """Yield the bits at a cell's ports of a direction, each with its port."""
    for port, bits in cell["connections"].items():
        if cell["port_directions"][port] == direction:
            yield from ((port, bit) for bit in bits if isinstance(bit, int))
