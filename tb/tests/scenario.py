"""A TEST as data: its variables, its jobs, and the rows that judge and report their results."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from neuroncore_rtl.run.execute import execute
from neuroncore_rtl.run.job import Job
from neuroncore_rtl.run.options import target_of
from neuroncore_rtl.run.program import ProgramFailed
from neuroncore_rtl.run.report import Report
from neuroncore_rtl.run.result import Result
from neuroncore_rtl.run.settings import Command, Settings
from neuroncore_rtl.run.targets.target import Target

__all__ = ["Jobs", "Rows", "Scenario", "run_jobs"]

Jobs = Iterable[Job]
"""The jobs of a TEST in the order of their execution. A generator receives the result of each job from its `yield`."""


@dataclass(frozen=True, kw_only=True)
class Rows:
    """What a TEST says of its results.

    Arguments:
        label: tells the record from others of the same TEST.
        rows: rows of the table, by heading; see `run.report.Report`.
        names: of the jobs, in front of their failures; empty for a single job.
        compared, mismatches: results that were compared besides the contents of memories.
        failures: reasons why the run has failed, besides those of the jobs.
        cycles: of the run; None: those of all jobs together.
        ideal_cycles, hbm_cycles, details, judge: see `run.report.Report`.
        settings: the values that the report shows, None: all of them.
    """

    label: str
    rows: Mapping[str, object] = field(default_factory=dict)
    names: Sequence[str] = ()
    compared: int = 0
    mismatches: int = 0
    failures: Iterable[str] = ()
    cycles: int | None = None
    ideal_cycles: int | None = None
    hbm_cycles: int | None = None
    details: Mapping[str, object] = field(default_factory=dict)
    judge: str | None = None
    settings: Mapping[str, object] | None = None


@dataclass(frozen=True, kw_only=True)
class Scenario(Command):
    """A TEST.

    Arguments (besides those of `Command`):
        jobs: makes the jobs of settings.
        rows: judges the results of all jobs.
        timed: whether the report has cycles.
    """

    jobs: Callable[[Settings], Jobs]
    rows: Callable[[Settings, Sequence[Result]], Rows]
    timed: bool = True
    run: Callable[[Settings], Report] = field(init=False)

    def __post_init__(self):
        object.__setattr__(self, "run", partial(_report, self))
        super().__post_init__()


def run_jobs(jobs: Jobs, on: Target, bandwidth: int = 0) -> Iterator[Result]:
    """Execute jobs one after another and yield their results; a generator of jobs receives each of them."""
    steps, result = iter(jobs), None
    while True:
        try:
            job = steps.send(result) if hasattr(steps, "send") else next(steps)
        except StopIteration:
            return
        result = execute(job, on, bandwidth=bandwidth)
        yield result


def _report(test: Scenario, settings: Settings) -> Report:
    """Run a TEST and return its report."""
    target, results = target_of(settings), []
    try:
        results += run_jobs(test.jobs(settings), target, settings.values.get("BANDWIDTH") or 0)
        found = test.rows(settings, results)
    except ProgramFailed as failure:
        found = Rows(label=target.name, failures=str(failure).splitlines())
    predicted = any(result.prediction is not None for result in results)
    names = [f"{name}: " for name in found.names] or [""] * len(results)
    failures = [f"{name}{failure}" for name, one in zip(names, results, strict=True) for failure in one.failures]
    counted = [result.cycles for result in results if result.cycles is not None]
    cycles = found.cycles if found.cycles is not None else sum(counted) if counted else None
    return Report(
        test=test.name,
        label=f"model-{found.label}" if predicted else found.label,
        settings=dict(settings.values if found.settings is None else found.settings),
        compared=found.compared + sum(result.compared for result in results),
        mismatches=found.mismatches + sum(result.mismatches for result in results),
        cycles=cycles if test.timed else None,
        ideal_cycles=found.ideal_cycles,
        hbm_cycles=found.hbm_cycles,
        extra=found.rows,
        failures=(*failures, *found.failures),
        details=found.details,
        modelled=predicted or target.name == "golden",
        judge=found.judge,
    )
