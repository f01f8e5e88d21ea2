"""`make sweep`: a TEST over lists of values of its variables, on many workers; writes rows, a table and plots."""

import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from neuroncore_rtl import SIM_BUILD
from neuroncore_rtl.run.settings import LANES_OPTION, PROFILE, SEED, SIM, WAVES, Settings, UsageError
from neuroncore_rtl.run.shell import display_path
from neuroncore_rtl.run.sim.vectors import lanes_choice, threads_choice
from neuroncore_rtl.run.view.plotting import write_parquet, write_table
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.tb.campaign import summary
from neuroncore_rtl.tb.campaign.plots import draw_campaign_roofline, draw_chips, draw_curves, draw_measures, draw_sizes
from neuroncore_rtl.tb.campaign.run import campaign, executor_of, exit_status
from neuroncore_rtl.tb.campaign.store import Store
from neuroncore_rtl.tb.campaign.sweep_spec import Point, Sweep, sweep_of
from neuroncore_rtl.tb.campaign.task import CURVES, Row, Task, key_of, sources
from neuroncore_rtl.tb.cli.registry import command_named
from neuroncore_rtl.tb.tests.links.options import INSTANCE_OPTIONS, TARGET_OPTIONS

__all__ = ["run_sweep", "simulate", "task_of"]

SWEEPS = SIM_BUILD / "sweeps"

BUILDS = {
    "PRESET", *map(str.upper, Config.RANGES),
    *(option.name for option in (*INSTANCE_OPTIONS, *TARGET_OPTIONS, SIM, LANES_OPTION, WAVES, PROFILE)),
}  # fmt: skip
"""Variables that a build depends on: runs with equal values of them share a build."""

PRINTED = 60  # most rows of the table on the terminal; the file has all
_PICTURES = {
    "sizes": draw_sizes, "measures": draw_measures, "curves": draw_curves, "roofline": draw_campaign_roofline,
    "chips": draw_chips,
}  # fmt: skip


def simulate(test: str, assignments: Sequence[str]) -> Row:
    """Run a TEST like `make sim` and return its row."""
    bench = command_named(test)
    settings = bench.settings(assignments)
    with lanes_choice(settings.values.get("LANES")), threads_choice(settings.values.get("THREADS") or 1):
        return summary.row_of(bench.run(settings))


def task_of(point: Point) -> Task:
    """Return the task of a sweep's run."""
    values = point.settings.values
    told = {name: value for name, value in point.settings.non_defaults.items() if name in point.swept}
    words = "-".join([point.test, *(f"{name.lower()}{value}" for name, value in told.items())])
    label = "".join(letter if letter.isalnum() or letter in "-." else "_" for letter in words)[:100]
    settings = {name: value if isinstance(value, int) else _content(value) for name, value in values.items()}
    machine = {name: str(value) for name, value in sorted(values.items()) if name in BUILDS}
    group = "" if values.get("TARGET") == "model" else f"{point.test} {machine}"
    return Task(label, key_of(sources(), point.test, settings), simulate, (point.test, point.assignments), group)


def _content(value: object) -> str:
    """Return the value for a task's key: for a file, a hash of its contents."""
    path = Path(str(value).partition(":")[0])
    digest = f" {hashlib.sha256(path.read_bytes()).hexdigest()}" if value is not None and path.is_file() else ""
    return f"{value}{digest}"


def run_sweep(settings: Settings) -> int:
    """Run the points of a sweep that have no stored result; write and print all results; return the exit status."""
    if settings.spec is None:
        raise UsageError("SPEC must be given, a file such as examples/sweep.toml")
    spec = sweep_of(settings.spec, command_named)
    tasks = [task_of(point) for point in spec.points]
    folder = SWEEPS / settings.spec.stem
    with Store(folder / "rows.jsonl") as store:
        found = {row["key"]: row for row in campaign(tasks, store, executor_of(settings), "sweep")}
    rows = [found[task.key] for task in tasks]
    _write(folder, rows, spec)
    return exit_status(rows)


def _write(folder: Path, rows: Sequence[Row], spec: Sweep) -> None:
    """Print the table of a sweep, and write its files and pictures."""
    swept = list(dict.fromkeys(name for point in spec.points for name in point.swept))
    summary.check_measures(rows, spec.measures)
    by_test: Mapping[str, list[Row]] = defaultdict(list)
    for point, row in zip(spec.points, rows, strict=True):
        by_test[point.test].append({**row, "test": point.test})
    measures = {test: summary.shown_measures(own, spec.measures) for test, own in by_test.items()}
    for test, values in spec.baselines.items():
        by_test[test] = summary.with_ratios(by_test[test], swept, measures[test], values)
    found = [row for own in by_test.values() for row in own]
    shown = list(dict.fromkeys(name for own in measures.values() for name in own))
    ratios = [summary.ratio_name(name) for name in shown] if spec.baselines else []
    columns = ["test", *swept, *shown, *ratios, "ideal_cycles", "bit_exact", "status", "seconds", "failure"]
    written = write_table([{name: row.get(name) for name in columns} for row in found], folder / "table")
    without_curves = [{name: value for name, value in row.items() if name != CURVES} for row in found]
    written.append(write_parquet(without_curves, folder / "rows.parquet"))
    if SEED.name in swept:
        spreads = [one for test, own in by_test.items() for one in summary.statistics_of(own, swept, measures[test])]
        if spreads:
            _print(list(spreads[0]), spreads)
            written += write_table(spreads, folder / "statistics")
    else:
        _print(columns, found)
    for test, values in spec.baselines.items():
        click.echo(f"ratios of {test}: to {' '.join(f'{name}={value}' for name, value in values.items())}")
    for test, own in by_test.items():
        names = [name for name in swept if any(name in row for row in own)]
        drawn = (draw(folder / f"{test}-{what}.png", own, names, measures[test]) for what, draw in _PICTURES.items())
        written += [path for path in drawn if path]
    for path in written:
        click.echo(display_path(path))


def _print(columns: Sequence[str], rows: Sequence[Row]) -> None:
    table = [[_cell(row.get(name)) for name in columns] for row in rows]
    kept = [n for n in range(len(columns)) if any(row[n] for row in table)]
    lines = [[columns[n].replace("_", " ") for n in kept], *([row[n] for n in kept] for row in table[:PRINTED])]
    click.echo("\n".join(summary.aligned_lines(lines)))
    if len(table) > PRINTED:
        click.echo(f"... and {len(table) - PRINTED:,} more rows")


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1000 else f"{value:,.1f}"
    return "" if value is None else f"{value:,}" if isinstance(value, int) else str(value)
