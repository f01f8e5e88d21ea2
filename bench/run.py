"""`make bench`: how long a build takes, how fast the engines simulate, how busy they are, and what a unit's area is.

Every figure is measured when the command runs. Cold builds start from an empty directory: elaboration, Verilator and
the C++ compiler, nothing cached. Simulation speed is wall time from the first clock edge to the last result.
"""

import json
import os

from neuroncore_rtl.bench import area, core, elementwise, link, tensor
from neuroncore_rtl.tb.sim.report import RESULTS, shown, terminal
from neuroncore_rtl.tb.sim.settings import Settings
from neuroncore_rtl.tb.sim.vectors import LANES_VARIABLE

__all__ = ["SIZES", "main"]

SIZES = (8, 16, 32, 64, 128)
"""Rows and columns of the arrays; lanes of the other engines are the smallest and the largest of them."""


PARTS = ("tensor", "elementwise", "core", "link", "area")
"""What `PART` chooses from."""


def main(settings: Settings) -> int:
    """Measure, print the tables, write `sim_build/results/bench.json`, and return the exit status."""
    os.environ[LANES_VARIABLE] = settings.lanes
    console = terminal()
    sizes = [settings.size] if settings.size else list(SIZES)
    parts = PARTS if settings.part == "all" else (settings.part,)
    record: dict[str, object] = {"cores": os.cpu_count(), "load": os.getloadavg(), "lanes": settings.lanes}
    rows = []
    if "tensor" in parts:
        record |= tensor.measure(sizes)
        rows += [*record["sizes"].values(), *record["products"]]
        for table in tensor.tables(record):
            console.print(table)
    if "elementwise" in parts:
        record |= elementwise.measure(sorted({sizes[0], sizes[-1]}))
        rows += record["engines"]
        console.print(elementwise.table(record))
    if "core" in parts:
        record |= core.measure()
        rows += [*record["core"], *record["dma"]]
        for table in core.tables(record):
            console.print(table)
    if "link" in parts:
        record |= link.measure()
        rows += [*record["link"], *record["beside"], record["instance_speed"]]
        for table in link.tables(record):
            console.print(table)
    if "area" in parts:
        record["area"] = area.measure_all()
        console.print(area.table(record["area"]))
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / ("bench.json" if settings.part == "all" else f"bench-{settings.part}.json")
    path.write_text(json.dumps(record, indent=2) + "\n")
    console.print(f"record: {shown(path)}", markup=False, soft_wrap=True)
    return 0 if all(row["bit_exact"] and row.get("within_bar", True) for row in rows) else 1
