"""Area and clock of single units on an ECP5, by Yosys and nextpnr: one processing element, one lane of each engine.

A unit is synthesised alone and placed out of context, its inputs and outputs registers or free wires as the unit has
them, so the clock is that of the unit's own slowest path between registers. The device is the largest ECP5.

ABC is given fewer passes than Yosys asks of it (`ABC`), the same for all units, so that their figures compare.
"""

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median

from amaranth.lib import wiring
from rich.table import Table

from neuroncore_rtl.bench.cold import timed
from neuroncore_rtl.bench.multiply_accumulate import MultiplyAccumulate
from neuroncore_rtl.hdl import verilog
from neuroncore_rtl.hdl.scalar.lane import ActivationLane
from neuroncore_rtl.hdl.scalar.tables import FunctionTables
from neuroncore_rtl.hdl.vector.lane import VectorLane
from neuroncore_rtl.tb.sim.doctor import MissingTool
from neuroncore_rtl.tb.sim.report import progress
from neuroncore_rtl.tb.sim.simulation import BuildFailed

__all__ = ["UNITS", "measure", "measure_all", "table"]

SEEDS = (1, 2, 3)
"""Of place and route; the clock is the median."""

DEVICE = ("--85k", "--package", "CABGA756", "--out-of-context")

CELLS = {"luts": "LUT4", "carries": "CCU2C", "multipliers": "MULT18X18D", "registers": "TRELLIS_FF", "rams": "DP16KD"}
"""The ECP5's primitives, by the name that the table gives them."""

ABC = "+&scorr; &sweep; &if {C} {W} {D} {R} -v"
"""What ABC does: it merges equal nodes and maps to LUTs. Yosys would have it run &dc2, &dch and &mfs as well, but with
them it did not end in 100 minutes on the 65,000 gates of a vector lane."""


UNITS: dict[str, Callable[[], wiring.Component]] = {
    "processing element, mac_latency 1": lambda: MultiplyAccumulate(1),
    "processing element, mac_latency 4": lambda: MultiplyAccumulate(4),
    "vector lane": VectorLane,
    "activation lane, tables aside": ActivationLane,
    "tables of two activation lanes": lambda: FunctionTables(2),
}
"""What is measured, by the name that the table shows."""


def measure(unit: wiring.Component) -> dict[str, object]:
    """Synthesise, place and route a unit, whose `sync` domain is the clock, for the ECP5.

    Returns:
        Primitives by the names of `CELLS`, and as `fmax_mhz` the highest clock in MHz, None if there is no clock.
    """
    with tempfile.TemporaryDirectory(prefix="area-") as name:
        directory = Path(name)
        (directory / "unit.v").write_text(verilog.convert(unit, "unit", None))
        _run(directory, "yosys", "-q", "-p", f'read_verilog unit.v; scratchpad -set abc9.script "{ABC}"; '
             "synth_ecp5 -top unit -json unit.json; tee -q -o stat.json stat -json")  # fmt: skip
        counts = json.loads((directory / "stat.json").read_text())["design"]["num_cells_by_type"]
        cells = {title: counts.get(cell, 0) for title, cell in CELLS.items()}
        clocks = [_clock(directory, seed) for seed in SEEDS]
    return cells | {"fmax_mhz": None if None in clocks else median(clocks)}


def _clock(directory: Path, seed: int) -> float | None:
    goal = ("--json", "unit.json", "--timing-allow-fail", "--freq", "200", "--seed", str(seed))
    clocks = re.findall(r"Max frequency for clock .*?: ([0-9.]+) MHz", _run(directory, "nextpnr-ecp5", *DEVICE, *goal))
    return float(clocks[-1]) if clocks else None


def measure_all() -> dict[str, dict[str, object]]:
    """Return cells, clock in MHz and seconds of every unit of `UNITS`, by name."""
    record = {}
    for name, build in UNITS.items():
        with progress(f"ECP5: {name}"):
            figures, seconds = timed(lambda build=build: measure(build()))
        record[name] = figures | {"seconds": seconds}
    return record


def table(record: dict[str, dict[str, object]]) -> Table:
    """Return the table of `measure_all`'s figures."""
    result = Table(title="Area and clock on an ECP5 (LFE5U-85F), each unit alone")
    result.add_column("unit")
    for heading in (*CELLS.values(), "MHz"):
        result.add_column(heading, justify="right")
    for name, row in record.items():
        clock = "-" if row["fmax_mhz"] is None else f"{row['fmax_mhz']:.1f}"
        result.add_row(name, *(f"{row[cell]:,}" for cell in CELLS), clock)
    return result


def _run(directory: Path, tool: str, *arguments: str) -> str:
    """Run one of YoWASP's tools and return what it said.

    Raises:
        MissingTool: if it is not there.
        BuildFailed: if it failed, with the end of what it said.
    """
    program = Path(sys.executable).with_name(f"yowasp-{tool}")
    if not program.is_file():
        raise MissingTool(f"{program.name} is missing beside {sys.executable}: install the package {program.name}")
    result = subprocess.run([program, *arguments], cwd=directory, capture_output=True, text=True)
    if result.returncode:
        raise BuildFailed(f"{tool} failed:\n{(result.stdout + result.stderr)[-2000:]}")
    return result.stdout + result.stderr
