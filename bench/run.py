"""`make bench`: build times, simulation speed from the first clock edge, utilisation, area, and published figures."""

import os
import platform
import re
from collections.abc import Callable, Iterable
from pathlib import Path

from neuroncore_rtl.bench import core, elementwise, link, program, tensor
from neuroncore_rtl.bench.fpga import area, depth
from neuroncore_rtl.bench.silicon import compare as silicon
from neuroncore_rtl.bench.ways import measured_ways
from neuroncore_rtl.run.report import RESULTS, write_record
from neuroncore_rtl.run.settings import Settings
from neuroncore_rtl.run.shell import display_path, terminal
from neuroncore_rtl.run.sim.vectors import LEVELS, lanes_choice, level

__all__ = ["machine", "machine_line", "processor", "run_benchmarks"]

SIZES = (8, 16, 32, 64, 128)  # the elementwise engines use the first and the last as their number of lanes
PARTS: dict[str, tuple[Callable, Callable]] = {
    "tensor": (lambda settings: tensor.measure_tensor(_sizes(settings)), tensor.tensor_tables),
    "elementwise": (lambda settings: elementwise.measure_elementwise(_sizes(settings)), elementwise.elementwise_tables),
    "core": (lambda settings: core.measure_core(), core.core_tables),
    "link": (lambda settings: link.measure_link(), link.link_tables),
    "program": (lambda settings: program.measure_program(), program.program_tables),
    "silicon": (lambda settings: silicon.measure_silicon(settings.preset), silicon.silicon_tables),
    "area": (lambda settings: area.measure_all(), lambda record: [area.area_table(record["area"])]),
    "depth": (lambda settings: depth.measure_depth(), depth.depth_tables),
}
"""By value of PART, a function from the settings to figures, and a function from figures to tables."""


def run_benchmarks(settings: Settings) -> int:
    """Measure, print this computer and the tables, write `sim_build/results/bench.json`; return the exit status."""
    console = terminal()
    with lanes_choice(settings.lanes):
        record = machine(() if settings.part in ("program", "area", "depth", "silicon") else measured_ways())
        console.print(machine_line(record), markup=False, soft_wrap=True)
        for part in PARTS if settings.part == "all" else (settings.part,):
            measure, tables = PARTS[part]
            record |= measure(settings)
            for table in tables(record):
                console.print(table)
    others = Settings(settings.some(("SIZE", "LANES", "PRESET")), settings.defaults)
    name = others.file_name("bench" if settings.part == "all" else f"bench-{settings.part}")
    path = write_record(RESULTS / f"{name}.json", record)
    console.print(f"record: {display_path(path)}", markup=False, soft_wrap=True)
    return 0 if _is_right(record) else 1


def _sizes(settings: Settings) -> list[int]:
    return [settings.size] if settings.size else list(SIZES)


def _is_right(figures: object) -> bool:
    if isinstance(figures, list):
        return all(map(_is_right, figures))
    if not isinstance(figures, dict):
        return True
    return all(figures.get(name, True) for name in ("bit_exact", "within_bar")) and _is_right(list(figures.values()))


def processor(information: Path = Path("/proc/cpuinfo")) -> str:
    """Return the name of the processor, or its architecture if the system does not report a name."""
    text = information.read_text() if information.is_file() else ""
    found = re.search(r"^model name\s*: (.+)$", text, re.MULTILINE)
    return found[1] if found else platform.machine()


def machine(ways: Iterable[str]) -> dict[str, object]:
    """Return the computer's processor, cores, load and vector instruction level, and the measured ways to simulate."""
    ways = list(ways)
    return {
        "cpu": processor(),
        "cores": os.cpu_count(),
        "load": os.getloadavg(),
        "ways": ways,
        "vectors": level() if "vector" in ways else None,
    }


def machine_line(found: dict[str, object]) -> str:
    """Return the result of `machine` as a line of text."""
    vectors = found["vectors"]
    kinds = {"vector": f" ({vectors}, {LEVELS[vectors].width} lanes at a time)"} if vectors else {}
    ways = " beside ".join(f"LANES={way}{kinds.get(way, '')}" for way in found["ways"])
    return ", ".join(filter(None, [found["cpu"], f"{found['cores']} cores", ways]))
