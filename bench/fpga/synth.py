"""`make synth`: FPGA resources of a unit, its clock, and the critical path."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict

from rich.markup import escape
from rich.table import Table

from neuroncore_rtl.bench.fpga.area import measure_area, route_unit
from neuroncore_rtl.bench.fpga.boards import BOARDS, MARGIN
from neuroncore_rtl.bench.fpga.netlist import check, netlist_device
from neuroncore_rtl.bench.fpga.units import UNITS
from neuroncore_rtl.run.fpga.modules import by_module, total
from neuroncore_rtl.run.fpga.paths import estimate_paths, estimate_table
from neuroncore_rtl.run.fpga.placement import path_table
from neuroncore_rtl.run.fpga.synthesis import FAMILIES, versions
from neuroncore_rtl.run.fpga.whole import largest, whole
from neuroncore_rtl.run.report import RESULTS, align_rows, write_record
from neuroncore_rtl.run.settings import Settings, UsageError
from neuroncore_rtl.run.shell import display_path, terminal
from neuroncore_rtl.run.tables import table

__all__ = ["run_synthesis"]

WHOLE = "core"


def run_synthesis(settings: Settings) -> int:
    """Synthesise a unit, print and store the figures; return the exit status."""
    if settings.unit is None:
        raise UsageError(f"UNIT must be given: one of {', '.join(UNITS)}")
    if settings.netlist and (settings.unit, settings.family) != ("array", "ecp5"):
        given = f"UNIT={settings.unit} FAMILY={settings.family}"
        raise UsageError(f"NETLIST=1 must be with UNIT=array FAMILY=ecp5, not {given}")
    unit, family = UNITS[settings.unit], FAMILIES[settings.family]
    record = {
        "unit": settings.unit,
        "summary": unit.summary,
        "settings": dict(settings.values),
        "config": asdict(settings.config),
        "family": settings.family,
        "device": family.device,
        "versions": versions(),
    }
    if settings.netlist:
        device, netlist = netlist_device(settings.config)
        compared, mismatches = check(device)
        record |= family.counts(netlist.cells)
        record |= {"compared": compared, "mismatches": mismatches, "bit_exact": bool(compared) and not mismatches}
    elif family.device and settings.unit == WHOLE:
        netlist, modules = whole(unit.build(settings.config), settings.unit)
        record |= {"largest": modules, "paths": estimate_paths(netlist)}
        record |= route_unit(netlist, range(1, settings.seeds + 1), settings.unit)
    elif family.device:
        record |= measure_area(unit.build(settings.config), range(1, settings.seeds + 1), settings.unit)
    else:
        modules = by_module(unit.build(settings.config), family, settings.unit)
        record |= total(modules, family) | {"modules": modules}
    console = terminal()
    for line in align_rows(_lines(record)):
        console.print(line, markup=False, soft_wrap=True)
    for found in _tables(record):
        console.print(found)
    if "refused" in record:
        text = f"FAILED: it cannot be placed on the {record['device']}: {record['refused']}"
        console.print(text, style="red", markup=False, soft_wrap=True)
    named = ("UNIT", "FAMILY", "PRESET")
    others = Settings(settings.some(name for name in settings.values if name not in named), settings.defaults)
    name = others.file_name("-".join(("synth", *settings.some(named).values())))
    path = write_record(RESULTS / f"{name}.json", record)
    console.print(f"record: {display_path(path)}", markup=False, soft_wrap=True)
    return 0 if record.get("bit_exact", True) and "refused" not in record else 1


def _lines(record: Mapping) -> Iterator[tuple[str, str]]:
    family = FAMILIES[record["family"]]
    settings = (f"{name}={value}" for name, value in record["settings"].items() if value is not None)
    yield "unit", f"{record['unit']}: {record['summary']}"
    yield "settings", " ".join(settings)
    yield "tools", ", ".join(f"{name} {version}" for name, version in record["versions"].items())
    yield from ((heading, f"{record[name]:,}") for name, (heading, _) in family.cells.items())
    if record.get("used"):
        yield record["device"], ", ".join(f"{name} {share:.1%}" for name, share in record["used"].items())
    if record.get("fmax_mhz"):
        seeds = ", ".join(f"{clock:.1f}" for clock in record["seeds"].values())
        yield "clock", f"{record['fmax_mhz']:.1f} MHz, the median of {seeds}"
    elif "modules" in record:
        yield "clock", "unknown: no tool here can place it; levels of logic show its limit"
    elif "used" in record:
        yield "clock", "none: there is no path between registers"
    if "compared" in record:
        yield "compared", f"{record['compared']:,} sums of products with golden's"
        yield "bit-exact", "yes" if record["bit_exact"] else "no"


def _tables(record: Mapping) -> Iterator[Table]:
    path = record.get("critical_path")
    if path:
        yield path_table(path)
    if "largest" in record:
        yield largest(record["largest"])
        yield estimate_table(record["paths"])
    modules = record.get("modules")
    if modules:
        family = FAMILIES[record["family"]]
        counts = " | ".join(f"{heading}: {{{name}:,}}" for name, (heading, _) in family.cells.items())
        rows = (
            row | {"depth": "-" if row["levels"] is None else f"{row['levels']}", "name": row["module"] + _mark(row)}
            for row in modules
        )
        title = f"By module, {family.title}: each module alone, and its number of instances"
        marks = {_mark(row) for row in modules}
        caption = "; ".join(text for mark, text in _MARKS.items() if mark in marks)
        yield table(title, rows, f"module: {{name}} | times: {{times:,}} | {counts} | levels: {{depth}}", caption)
        yield table("The deepest logic, from register to register", _deepest(modules), _DEEPEST)
    if modules and record["unit"] == WHOLE:
        title = f"Boards: share of a device's resources, and whether {MARGIN:.0%} of each would remain free"
        columns = """
        board: {name} | device: {part} | LUT: {luts:.0%} | FF: {registers:.0%} | DSP: {multipliers:.0%}
        RAMB36: {rams:.0%} | URAM: {urams:.0%} | fits: {fits}
        """
        cells = (
            {"name": board.name, "part": board.part, "fits": board.verdict(record), **board.shares(record)}
            for board in BOARDS
        )
        caption = "a missing UltraRAM counts as eight block RAMs; nothing was placed, or tried on a board"
        yield table(title, cells, columns, caption)


_MARKS = {
    "*": "*: gates, which exceed the number of LUTs, as ABC fails on the module",
    "**": "**: not counted, nor included in the sums, as Yosys fails on the module",
}


def _mark(row: Mapping) -> str:
    return "*" if row["gates"] else "" if row["counted"] else "**"


_DEEPEST = "module: {module} | levels: {levels} | from: {from_name}\\n{from_place} | to: {to_name}\\n{to_place}"
MOST_PATHS = 3  # modules in the table of the deepest logic


def _deepest(modules: list[Mapping]) -> Iterator[dict[str, object]]:
    for row in sorted(modules, key=lambda row: -(row["levels"] or 0))[:MOST_PATHS]:
        ends = {"from": row["start"], "to": row["end"]}
        names = {f"{way}_name": escape(end[0]) if end else "(no name)" for way, end in ends.items()}
        places = {f"{way}_place": end[1] or "" if end else "" for way, end in ends.items()}
        yield row | names | places
