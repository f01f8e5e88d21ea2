"""`make bench`: build times, simulation speed from the first clock edge, utilisation, area, and published figures."""

import json
from collections.abc import Callable

from neuroncore_rtl.bench import core, elementwise, link, program, tensor
from neuroncore_rtl.bench.fpga import area, depth
from neuroncore_rtl.bench.machine import machine, machine_line
from neuroncore_rtl.bench.silicon import compare as silicon
from neuroncore_rtl.bench.ways import measured_ways
from neuroncore_rtl.run.report import RESULTS, display_path, terminal
from neuroncore_rtl.run.settings import Settings
from neuroncore_rtl.run.sim.vectors import lanes_choice

__all__ = ["run_benchmarks"]

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
    with lanes_choice(settings.lanes):
        return _measure(settings)


def _sizes(settings: Settings) -> list[int]:
    return [settings.size] if settings.size else list(SIZES)


def _measure(settings: Settings) -> int:
    console = terminal()
    record = machine(() if settings.part in ("program", "area", "depth", "silicon") else measured_ways())
    console.print(machine_line(record), markup=False, soft_wrap=True)
    for part in PARTS if settings.part == "all" else (settings.part,):
        measure, tables = PARTS[part]
        record |= measure(settings)
        for table in tables(record):
            console.print(table)
    RESULTS.mkdir(parents=True, exist_ok=True)
    others = Settings(settings.some(("SIZE", "LANES", "PRESET")), settings.defaults)
    path = RESULTS / f"{others.file_name('bench' if settings.part == 'all' else f'bench-{settings.part}')}.json"
    path.write_text(json.dumps(record, indent=2) + "\n")
    console.print(f"record: {display_path(path)}", markup=False, soft_wrap=True)
    return 0 if _is_right(record) else 1


def _is_right(figures: object) -> bool:
    if isinstance(figures, list):
        return all(map(_is_right, figures))
    if not isinstance(figures, dict):
        return True
    return all(figures.get(name, True) for name in ("bit_exact", "within_bar")) and _is_right(list(figures.values()))
