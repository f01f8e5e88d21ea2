"""`make soak`: random programs on random machines, for hours, each against golden; failures are cut down and kept."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import click

from neuroncore_rtl import SIM_BUILD
from neuroncore_rtl.run.report import shown
from neuroncore_rtl.run.settings import Settings, UsageError
from neuroncore_rtl.tb.campaign.options import executor_of
from neuroncore_rtl.tb.campaign.run import campaign, exit_status
from neuroncore_rtl.tb.campaign.soak.coverage import coverage_table
from neuroncore_rtl.tb.campaign.soak.runs import CASE, judged, soaks
from neuroncore_rtl.tb.campaign.store import Store
from neuroncore_rtl.tb.campaign.task import FAILURE, Row, Status
from neuroncore_rtl.tb.tests.soak.draw import read_case

__all__ = ["soak_machine"]

SOAKS = SIM_BUILD / "soak"
"""A folder for each seed."""

MINUTES = 10
"""Unless told."""


def soak_machine(settings: Settings) -> int:
    """Run a soak, or a case that one has kept, and print what came of it; return the exit status.

    Raises:
        UsageError: if what it is told goes not together, or a case is none.
    """
    if settings.case is not None:
        return _repeat(settings.case)
    lengths = [name for name in ("HOURS", "MINUTES", "RUNS") if settings.values[name] is not None]
    if len(lengths) > 1:
        raise UsageError(f"HOURS, MINUTES or RUNS must be given, not {' and '.join(lengths)}")
    seconds = 3600 * (settings.hours or 0) + 60 * (settings.minutes or 0) or 60 * MINUTES
    tasks = soaks(settings.seed, settings.tries)
    folder = SOAKS / f"seed-{settings.seed}"
    rows: list[Row] = []
    interrupted = False
    with Store(folder / "rows.jsonl") as store:
        executor = executor_of(settings)
        if settings.runs is None:
            found = campaign(tasks, store, executor, "soak", seconds)
        else:
            found = campaign(list(islice(tasks, settings.runs)), store, executor, "soak")
        try:
            for row in found:
                rows.append(row)
                _keep(folder, row)
        except KeyboardInterrupt:
            interrupted = True
            found.close()
    _print(folder, rows)
    return 130 if interrupted else exit_status(rows) if rows else 1


def _repeat(path: Path) -> int:
    """Run a case that was kept."""
    case = read_case(path)
    click.echo("\n".join(case.lines()))
    verdict = judged(case)
    for failure in verdict.failures:
        click.echo(failure)
    click.echo(f"{verdict.cycles:,} cycles, {verdict.compared:,} compared")
    click.echo(f"FAILED: {verdict.kind}" if verdict.kind else "PASSED")
    return int(bool(verdict.kind))


def _keep(folder: Path, row: Row) -> None:
    """Write the case of a failure, its program for people, and what is wrong."""
    if row.get(CASE) is None:
        return
    own = _place(folder, row)
    own.mkdir(parents=True, exist_ok=True)
    (own / "case.json").write_text(row[CASE])
    words = (f"# {row[FAILURE]}", f"# {_command(folder, row)}", row["program"], "")
    (own / "program.txt").write_text("\n".join(words))


def _place(folder: Path, row: Row) -> Path:
    return folder / "failures" / row["label"]


def _command(folder: Path, row: Row) -> str:
    """Return what runs the case of a failure again."""
    return f"make soak CASE={shown(_place(folder, row) / 'case.json')}"


def _print(folder: Path, rows: Sequence[Row]) -> None:
    """Print what was run, what it covers, and the failures."""
    tests = dict.fromkeys(row["test"] for row in rows if "test" in row)
    for line in _lines(["test", "runs", "passed", "instructions", "cycles", "compared", "seconds"], rows, tests):
        click.echo(line)
    click.echo("")
    for heading, text in coverage_table(rows):
        click.echo(f"{heading}: {text}")
    failed = [row for row in rows if row["status"] != Status.PASSED]
    click.echo("")
    for row in failed:
        click.echo(f"{row['label']} {row['status']}: {row[FAILURE]}")
        if row.get(CASE) is not None:
            click.echo(f"  {row['left']:,} of {row['instructions']:,} instructions are left: {_command(folder, row)}")
        else:
            click.echo(f"  what it printed is in {shown(folder / 'runs')}, in the folder of its name")
    click.echo(f"{len(failed):,} of {len(rows):,} runs have failed; rows: {shown(folder / 'rows.jsonl')}")


def _lines(columns: Sequence[str], rows: Sequence[Row], tests: Sequence[str]) -> Iterator[str]:
    """Yield the lines of a table: a line a test, and one of all."""
    lines = [columns]
    for test in (*tests, "all"):
        own = [row for row in rows if test in (row.get("test"), "all")]
        sums = Counter()
        for row in own:
            sums.update({name: row.get(name, 0) for name in columns[3:]})
        passed = sum(row["status"] == Status.PASSED for row in own)
        lines.append([test, f"{len(own):,}", f"{passed:,}", *(f"{sums[name]:,.0f}" for name in columns[3:])])
    widths = [max(len(line[n]) for line in lines) for n in range(len(columns))]
    yield from ("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in lines)
