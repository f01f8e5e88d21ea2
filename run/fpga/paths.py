"""Estimate of the slowest register-to-register paths of a whole machine, from its netlist for the ECP5.

Cell delays are nextpnr's for speed grade 6; every wire has an average delay. The estimate takes seconds instead of
nextpnr's hours, and is within about a tenth of its result.
"""

import json
import re
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, count
from typing import Any

from rich.markup import escape
from rich.table import Table

from neuroncore_rtl.run.fpga.synthesis import Netlist, named_bits
from neuroncore_rtl.run.tables import table

__all__ = ["Arc", "arrivals", "estimate_paths", "estimate_table", "start_of"]

WIRE = 1.1
"""ns of a wire through the fabric. For a core that fills nine tenths of an LFE5U-85F the estimate is then 64 ns;
nextpnr reports 69 ns after placement."""

LUT, SELECT = 0.24, 0.26
"""ns of a LUT4, and from the select input of the multiplexers between LUTs; their data inputs have no wires."""

CARRY_IN, CARRY, CARRY_OUT = 0.45, 0.07, 0.44
"""ns into a carry chain, along one cell, and out of it."""

MULTIPLIER, CLOCK_TO_Q, RAM_TO_Q = 3.93, 0.53, 5.83
"""ns through a multiplier, and from the clock to the output of a register and of a block RAM. Source of all cell
delays: timing database of Project Trellis, ECP5/timing/speed_6."""

MOST_PATHS, MOST_PARTS, MOST_NAMES = 12, 3, 6
"""Most paths of a table, parts of a signal's name, and named signals on a path."""

_Signal = tuple[str, str | None]

Arc = tuple[int, int, float]
"""Combinational arc: the net at an input of a cell, the net at an output, and the delay between them in ns."""


@dataclass
class _Cell:
    """Cell of the flat netlist; `bits` has the nets at each port, except constants."""

    name: str
    type: str
    bits: Mapping[str, list[int]]

    def of(self, *ports: str) -> Iterator[int]:
        for port in ports:
            yield from self.bits.get(port, ())

    def matching(self, ports: str) -> Iterator[int]:
        return self.of(*(port for port in self.bits if re.fullmatch(ports, port)))


def estimate_paths(netlist: Netlist) -> list[dict[str, object]]:
    """Return the slowest path from each register or memory, slowest first.

    Start signals that differ only in numbers share one row.

    Returns:
        `ns`; `start` and `end`, a signal and its source line or None; `through`, signals with their arrival in ns.
    """
    cells, names = _flatten(netlist)
    arrival, before = arrivals(chain.from_iterable(map(_arcs, cells)), chain.from_iterable(map(_begins, cells)))
    slowest: dict[int, tuple[float, int, _Cell]] = {}
    starts: dict[int, int] = {}
    for cell in cells:
        for net in _ends(cell):
            start = start_of(net, before, starts)
            if arrival.get(net, 0.0) > slowest.get(start, (0.0,))[0]:
                slowest[start] = arrival[net], net, cell
    rows: dict[str, dict[str, object]] = {}
    for start, (ns, net, cell) in sorted(slowest.items(), key=lambda item: -item[1][0]):
        name, place = names.get(start, ("(no name)", None))
        signal = name.partition("[")[0]
        if (alike := re.sub(r"\d+", "", signal)) not in rows:
            through = list(_through(net, before, arrival, names))
            rows[alike] = {"ns": ns + WIRE, "start": (signal, place), "end": _end(cell, names), "through": through}
    return list(rows.values())


def estimate_table(rows: list[Mapping]) -> Table:
    """Return a table of the rows of `estimate_paths`."""
    cells = (
        {
            "ns": row["ns"],
            "from_": _format_signal(row["start"]),
            "to": _format_signal(row["end"]),
            "through": escape(" > ".join(f"{name} {ns:.0f}" for name, ns in row["through"][:MOST_NAMES])),
        }
        for row in rows[:MOST_PATHS]
    )
    caption = "average wires of a full device; the number after a signal is its arrival in ns"
    return table("Slowest paths, estimated: of each register the slowest", cells, _COLUMNS, caption)


_COLUMNS = "ns: {ns:.1f} | from: {from_} | to: {to} | through: {through}"


def _format_signal(end: _Signal) -> str:
    """Return a signal's name and source line as text; a long name without the modules in the middle of its path."""
    name, place = end
    parts = name.rpartition("core.")[2].split(".")
    short = ".".join(parts if len(parts) <= MOST_PARTS else [parts[0], "", *parts[-2:]])
    return escape(f"{short}\n{place}" if place else short)


def _flatten(netlist: Netlist) -> tuple[list[_Cell], dict[int, _Signal]]:
    """Return the cells of a flat netlist, and name and source line of each net that has a name in the source."""
    modules = json.loads((netlist.folder / "netlist.json").read_text())["modules"]
    cells, names, numbers = [], {}, count(1)

    def add(module: Mapping, path: str, bound: dict[int, int]) -> None:
        nets = defaultdict(numbers.__next__, bound)
        for bit, name, index, place in named_bits(module):
            full = f"{path}{name}[{index}]"
            # The shortest name is nearest to the top.
            if isinstance(bit, int) and (nets[bit] not in names or len(full) < len(names[nets[bit]][0])):
                names[nets[bit]] = full, place
        for name, cell in module["cells"].items():
            bits = {port: [nets[bit] for bit in of if isinstance(bit, int)] for port, of in cell["connections"].items()}
            inner = modules.get(cell["type"], {"cells": {}})
            if not inner["cells"]:
                cells.append(_Cell(f"{path}{name}", cell["type"], bits))
                continue
            ports = ((port["bits"], cell["connections"].get(of, ())) for of, port in inner["ports"].items())
            pairs = (pair for inside, outside in ports for pair in zip(inside, outside, strict=False))
            add(inner, f"{path}{name}.", {i: nets[o] for i, o in pairs if isinstance(i, int) and isinstance(o, int)})

    add(netlist.module, "", {})
    return cells, names


def _arcs(cell: _Cell) -> Iterator[Arc]:
    """Yield the combinational arcs of a cell; a delay includes the wire to the cell's input."""
    match cell.type:
        case "LUT4":
            yield from _product(cell.of("A", "B", "C", "D"), cell.of("Z"), LUT + WIRE)
        case "PFUMX":
            yield from _product(cell.of("ALUT", "BLUT"), cell.of("Z"), SELECT)
            yield from _product(cell.of("C0"), cell.of("Z"), SELECT + WIRE)
        case "L6MUX21":
            yield from _product(cell.of("D0", "D1"), cell.of("Z"), SELECT)
            yield from _product(cell.of("SD"), cell.of("Z"), SELECT + WIRE)
        case "CCU2C":
            low, high = ("A0", "B0", "C0", "D0"), ("A1", "B1", "C1", "D1")
            yield from _product(cell.of(*low), cell.of("S0"), CARRY_OUT + WIRE)
            yield from _product(cell.of(*low, *high), cell.of("COUT", "S1"), CARRY_IN + WIRE)
            yield from _product(cell.of("CIN"), cell.of("COUT"), CARRY)
            yield from _product(cell.of("CIN"), cell.of("S0", "S1"), CARRY_OUT)
        case "MULT18X18D":
            yield from _product(set(cell.matching(r"[AB]\d+")), cell.matching(r"P\d+"), MULTIPLIER + WIRE)
        case "TRELLIS_DPR16X4":
            yield from _product(cell.of("RAD"), cell.of("DO"), LUT + WIRE)


def _product(sources, targets, ns: float) -> Iterator[Arc]:
    targets = list(targets)
    return ((source, target, ns) for source in sources for target in targets)


def _begins(cell: _Cell) -> Iterator[tuple[int, float]]:
    """Yield the nets where paths begin: outputs of a register or block RAM, with the delay after the clock edge."""
    if cell.type == "TRELLIS_FF":
        yield from ((net, CLOCK_TO_Q) for net in cell.of("Q"))
    elif cell.type == "DP16KD":
        yield from ((net, RAM_TO_Q) for net in cell.matching(r"DO[AB]\d+"))


def _ends(cell: _Cell) -> Iterator[int]:
    if cell.type == "TRELLIS_FF":
        yield from cell.of("DI", "CE", "LSR")
    elif cell.type == "DP16KD":
        yield from cell.matching(r"(DI|AD|WE|CE|OCE|CS|RST)[AB]\d*")
    elif cell.type == "TRELLIS_DPR16X4":
        yield from cell.of("DI", "WAD", "WRE")


def arrivals(arcs: Iterable[Arc], begins: Iterable[tuple[int, float]] = ()) -> tuple[dict[int, float], dict[int, int]]:
    """Return the arrival time of each net, and the net before it on the slowest path to it; a loop is not followed.

    Paths begin at the time 0, or as `begins` has it for a net.
    """
    onward: dict[int, list[tuple[int, float]]] = {}
    waits: dict[int, int] = {}
    arrival = dict(begins)
    for source, target, ns in arcs:
        onward.setdefault(source, []).append((target, ns))
        waits[target] = waits.get(target, 0) + 1
    before: dict[int, int] = {}
    ready = deque(net for net in onward if net not in waits)
    while ready:
        net = ready.popleft()
        for target, ns in onward.get(net, ()):
            if arrival.get(net, 0.0) + ns > arrival.get(target, 0.0):
                arrival[target], before[target] = arrival.get(net, 0.0) + ns, net
            waits[target] -= 1
            if not waits[target]:
                ready.append(target)
    return arrival, before


def start_of(net: int, before: Mapping[int, int], starts: dict[int, int]) -> int:
    """Return the first net of the slowest path to a net; `starts` caches the results of earlier calls."""
    way = []
    while net not in starts and net in before:
        way.append(net)
        net = before[net]
    start = starts.get(net, net)
    starts.update(dict.fromkeys(way, start))
    return start


def _through(net: int, before: Mapping, arrival: Mapping, names: Mapping) -> Iterator[tuple[str, float]]:
    """Yield each named signal on the slowest path to a net, with its arrival time in ns, the latest first."""
    seen = set()
    while net in before:
        if net in names:
            signal = names[net][0].partition("[")[0].rpartition(".")[2]
            if signal not in seen:
                seen.add(signal)
                yield signal, arrival[net]
        net = before[net]


def _end(cell: _Cell, names: Mapping[Any, _Signal]) -> _Signal:
    held = next(cell.of("Q"), None) if cell.type == "TRELLIS_FF" else None
    name, place = names.get(held, (re.sub(r"(\.\d+)+$", "", cell.name), None))
    return name.partition("[")[0], place
