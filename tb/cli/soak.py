"""`make soak`: random programs on random machines; failures are shrunk and stored."""

from collections import Counter
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import click

from neuroncore_rtl import SIM_BUILD
from neuroncore_rtl.run.settings import Settings, UsageError
from neuroncore_rtl.run.shell import display_path, shell_command
from neuroncore_rtl.tb.campaign.run import campaign, executor_of, exit_status
from neuroncore_rtl.tb.campaign.soak.runs import CASE, coverage_table, judge_case, soak_tasks
from neuroncore_rtl.tb.campaign.store import Store
from neuroncore_rtl.tb.campaign.summary import aligned_lines
from neuroncore_rtl.tb.campaign.task import FAILURE, Row, Status
from neuroncore_rtl.tb.tests.soak.draw import read_case

__all__ = ["soak_machine"]

SOAKS = SIM_BUILD / "soak"
MINUTES = 10


def soak_machine(settings: Settings) -> int:
    """Run a soak or a stored case; return the exit status."""
    if settings.case is not None:
        return _repeat(settings.case)
    lengths = [name for name in ("HOURS", "MINUTES", "RUNS") if settings.values[name] is not None]
    if len(lengths) > 1:
        raise UsageError(f"HOURS, MINUTES or RUNS must be given, not {' and '.join(lengths)}")
    seconds = 3600 * (settings.hours or 0) + 60 * (settings.minutes or 0) or 60 * MINUTES
    tasks = soak_tasks(settings.seed, settings.tries)
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
    if rows or not interrupted:
        _print(folder, rows)
    if interrupted:
        raise KeyboardInterrupt
    return exit_status(rows) if rows else 1


def _repeat(path: Path) -> int:
    case = read_case(path)
    click.echo("\n".join(case.lines()))
    verdict = judge_case(case)
    for failure in verdict.failures:
        click.echo(failure)
    click.echo(f"{verdict.cycles:,} cycles, {verdict.compared:,} compared")
    click.echo(f"FAILED: {verdict.kind}" if verdict.kind else "PASSED")
    return int(bool(verdict.kind))


def _keep(folder: Path, row: Row) -> None:
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
    return shell_command("soak", "", f"CASE={display_path(_place(folder, row) / 'case.json')}")


def _print(folder: Path, rows: Sequence[Row]) -> None:
    tests = dict.fromkeys(row["test"] for row in rows if "test" in row)
    columns = ["test", "runs", "passed", "instructions", "cycles", "compared", "seconds"]
    click.echo("\n".join(aligned_lines(_table(columns, rows, tests))))
    click.echo("")
    for heading, text in coverage_table(rows):
        click.echo(f"{heading}: {text}")
    failed = [row for row in rows if row["status"] != Status.PASSED]
    click.echo("")
    for row in failed:
        click.echo(f"{row['label']} {row['status']}: {row[FAILURE]}")
        if row.get(CASE) is not None:
            click.echo(f"  {row['left']:,} of {row['instructions']:,} instructions remain: {_command(folder, row)}")
        else:
            click.echo(f"  its output is in the folder of its name in {display_path(folder / 'runs')}")
    click.echo(f"{len(failed):,} of {len(rows):,} runs have failed; rows: {display_path(folder / 'rows.jsonl')}")


def _table(columns: Sequence[str], rows: Sequence[Row], tests: Sequence[str]) -> list[Sequence[str]]:
    lines = [columns]
    for test in (*tests, "all"):
        own = [row for row in rows if test in (row.get("test"), "all")]
        sums = Counter()
        for row in own:
            sums.update({name: row.get(name, 0) for name in columns[3:]})
        passed = sum(row["status"] == Status.PASSED for row in own)
        lines.append([test, f"{len(own):,}", f"{passed:,}", *(f"{sums[name]:,.0f}" for name in columns[3:])])
    return lines
