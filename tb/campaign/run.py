"""Campaign: runs the tasks without a row in the store, and stores each new row."""

import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from neuroncore_rtl import SIM_BUILD
from neuroncore_rtl.run.monitor import Ongoing, watched
from neuroncore_rtl.run.settings import Settings
from neuroncore_rtl.run.shell import display_path, terminal
from neuroncore_rtl.tb.campaign.executor import Executor, LocalExecutor, run_tasks
from neuroncore_rtl.tb.campaign.store import Store
from neuroncore_rtl.tb.campaign.task import Row, Status, Task

__all__ = ["campaign", "executor_of", "exit_status"]

SECONDS = 30  # interval of the progress lines when there is no terminal


def executor_of(settings: Settings) -> Executor:
    """Return the executor that CLUSTER and WORKERS select."""
    if settings.cluster is not None:
        from neuroncore_rtl.tb.campaign.cluster import cluster_named  # imports distributed

        return cluster_named(settings.cluster, settings.workers)
    return LocalExecutor(settings.workers) if settings.workers else LocalExecutor()


def campaign(
    tasks: Iterable[Task], store: Store, executor: Executor, title: str, seconds: float | None = None
) -> Iterator[Row]:
    """Yield a row per task, the store's rows first, then print the number of rows with each status.

    A broken task has a row, too. However the campaign ends, all finished rows are stored. Ctrl-C prints no
    numbers: the command says in one line that it was interrupted.

    Arguments:
        tasks: may be infinite with `seconds`; of tasks with the same key, one runs.
        store: entered. Each run gets a folder in `runs`, next to the store's file.
        executor: entered here, if any task must run.
        title: heading.
        seconds: time after which no task is submitted.
    """
    if seconds is None:
        unique = {task.key: task for task in tasks}
        known = [key for key in unique if store.has_result(key)]
        new = [task for key, task in unique.items() if not store.has_result(key)]
        end, total = None, len(new)
    else:
        end, total, known = time.monotonic() + seconds, None, []
        new = (task for task in tasks if not store.has_result(task.key))
    runs = store.path.parent.absolute() / "runs"
    runs = str(runs.relative_to(SIM_BUILD) if runs.is_relative_to(SIM_BUILD) else runs)
    told, counts = True, Counter(store.row(key)["status"] for key in known)
    try:
        yield from map(store.row, known)
        if new:
            with _progress(title, total, len(known), end) as step, executor:
                for _, row in run_tasks(new, executor, runs, lambda: end and time.monotonic() >= end):
                    store.add(row)
                    counts[row["status"]] += 1
                    step(row)
                    yield row
    except (KeyboardInterrupt, GeneratorExit):
        told = False
        raise
    finally:
        if told:
            _count(title, counts.total() if total is None else total + len(known), len(known), counts, store)


def exit_status(rows: Iterable[Row]) -> int:
    """Return 0 if all rows have passed, else 1."""
    return int(any(row["status"] != Status.PASSED for row in rows))


def _count(title: str, total: int, known: int, counts: Counter, store: Store) -> None:
    words = ", ".join(f"{counts[status]:,} {status}" for status in (Status.PASSED, Status.FAILED, Status.BROKEN))
    left = total - counts.total()
    interrupted = f"; {left:,} remain, repeat the command to continue" if left else ""
    said = f"{title}: {total:,} tasks, {known:,} known: {words}{interrupted} ({display_path(store.path)})"
    terminal(stderr=True).print(said, markup=False, soft_wrap=True)


@contextmanager
def _progress(title: str, total: int | None, known: int, end: float | None) -> Iterator:
    console = terminal(stderr=True)
    started, said, failures = time.monotonic(), time.monotonic(), 0
    if not console.is_terminal:
        asked = f"{end - started:,.0f} s" if total is None else f"{total:,} to run"
        console.print(f"{title}: {asked}, {known:,} known", markup=False)
    columns = (
        TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
        TextColumn("left"), TimeRemainingColumn(),
    )  # fmt: skip
    done = 0

    def part() -> float:
        return done / total if total else min(1.0, (time.monotonic() - started) / (end - started))

    recorded = Ongoing(title, done=part, runs=lambda: (done - failures, failures))
    display = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
    with display, watched(recorded):
        shown_task = display.add_task(title, total=total or end - started)

        def step(row: Row) -> None:
            nonlocal done, said, failures
            done += 1
            if row["status"] != Status.PASSED:
                failures += 1
                console.print(f"{row['label']} {row['status']}: {row['failure']}", markup=False, soft_wrap=True)
            now = time.monotonic()
            if total is None:
                display.update(shown_task, completed=now - started, description=f"{title}: {done:,} done, seconds")
            else:
                display.update(shown_task, advance=1)
            if not console.is_terminal and now - said >= SECONDS:
                said = now
                left = max(0.0, end - now) if total is None else (now - started) / done * (total - done)
                of = "" if total is None else f" of {total:,}"
                wrong = f", {failures:,} not passed" if failures else ""
                console.print(f"{title}: {done:,}{of}{wrong}, about {left:,.0f} s left", markup=False)

        yield step
