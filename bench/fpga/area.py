"""Area and clock of single units. No open tool does that for UltraScale+: see `run.fpga.modules`."""

from collections.abc import Callable, Iterable
from statistics import median_low

from amaranth.lib import wiring
from rich.table import Column, Table

from neuroncore_rtl.bench.fpga.units import UNITS
from neuroncore_rtl.run.fpga.placement import place
from neuroncore_rtl.run.fpga.synthesis import FAMILIES, Family, Netlist, elaborate_unit, synthesise, versions
from neuroncore_rtl.run.report import progress
from neuroncore_rtl.run.sim.simulation import BuildFailed
from neuroncore_rtl.spec.config import PRESETS

__all__ = ["ROWS", "area_table", "measure_all", "measure_area", "route_unit", "synthesise_unit"]

ECP5 = FAMILIES["ecp5"]
SEEDS = (1, 2, 3)  # default seeds of place and route; the clock is their median
_SMALL = PRESETS["small"]

ROWS: dict[str, Callable[[], wiring.Component]] = {
    "multiply-accumulate, mac_latency 1": lambda: UNITS["mac"].build(_SMALL),
    "multiply-accumulate, mac_latency 4": lambda: UNITS["mac"].build(_SMALL.with_overrides(mac_latency=4)),
    "processing element, mac_latency 4": lambda: UNITS["pe"].build(_SMALL.with_overrides(mac_latency=4)),
    "vector lane": lambda: UNITS["vector_lane"].build(_SMALL),
    "activation lane, tables aside": lambda: UNITS["activation_lane"].build(_SMALL),
    "tables of two activation lanes": lambda: UNITS["tables"].build(_SMALL),
}


def synthesise_unit(component: wiring.Component, family: Family, name: str) -> Netlist:
    """Return the netlist of a component for one of `run.fpga.synthesis.FAMILIES`."""
    modules, verilog = elaborate_unit(component, name)
    with progress(f"{name}: Yosys, {family.title}"):
        return synthesise(name, modules.values(), verilog, family)


def measure_area(component: wiring.Component, seeds: Iterable[int] = SEEDS, name: str = "unit") -> dict[str, object]:
    """Synthesise a component with the clock `sync` for the ECP5, place and route it.

    Returns:
        Counts by the names of the family's `cells`; `fmax_mhz`, the median clock in MHz, None without a clock; `seeds`,
        the clocks by seed; and the result of `run.fpga.placement.place` for the median's seed. If the unit cannot
        be placed: counts and `refused`, the tool's message.
    """
    return route_unit(synthesise_unit(component, ECP5, name), seeds, name)


def route_unit(netlist: Netlist, seeds: Iterable[int], name: str) -> dict[str, object]:
    """Place and route a netlist; return the figures."""
    figures = ECP5.counts(netlist.cells) | {"fmax_mhz": None, "seeds": {}}
    placed = {}
    for seed in seeds:
        try:
            with progress(f"{name}: nextpnr, seed {seed}"):
                placed[seed] = place(netlist, seed)
        except BuildFailed as refusal:
            return figures | {"refused": str(refusal)}
    if not placed:
        return figures
    clocks = {seed: one["fmax_mhz"] for seed, one in placed.items()}
    if None in clocks.values():
        return figures | next(iter(placed.values()))
    middle = median_low(clocks.values())
    return figures | {"seeds": clocks} | next(one for one in placed.values() if one["fmax_mhz"] == middle)


def measure_all() -> dict[str, object]:
    """Return the tools' versions and the figures of each unit in `ROWS`."""
    return {"versions": versions(), "area": {name: measure_area(build()) for name, build in ROWS.items()}}


def area_table(record: dict[str, dict[str, object]]) -> Table:
    """Return the table of the figures by unit."""
    headings = (Column(heading, justify="right") for heading in (*(name for name, _ in ECP5.cells.values()), "MHz"))
    title = f"Area and clock on an ECP5 ({ECP5.device}), each unit alone"
    result = Table("unit", *headings, title=title, caption="MHz: the median of the seeds")
    for name, row in record.items():
        clock = "-" if row["fmax_mhz"] is None else f"{row['fmax_mhz']:.1f}"
        result.add_row(name, *(f"{row[cell]:,}" for cell in ECP5.cells), clock)
    return result
