"""TEST as data: its variables, its jobs, and a function that judges the jobs' results and makes the report's rows."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from neuroncore_rtl.run.job import Job
from neuroncore_rtl.run.program import ProgramFailed
from neuroncore_rtl.run.report import Report
from neuroncore_rtl.run.result import Result
from neuroncore_rtl.run.settings import Command, Settings
from neuroncore_rtl.run.targets import Target, execute, target_of

__all__ = ["Jobs", "Rows", "Scenario", "run_jobs"]

Jobs = Iterable[Job]
"""The jobs of a TEST in the order of their execution. A generator receives the result of each job from its `yield`."""


@dataclass(frozen=True, kw_only=True)
class Rows:
    """Judgement of a TEST's results.

    Arguments:
        label: distinguishes the stored record from other records of the same TEST.
        rows: rows of the table, by heading; see `run.report.Report`.
        names: names of the jobs, printed in front of a job's failures; empty for a single job.
        compared: number of compared results other than the contents of memories.
        mismatches: number of compared results that differ.
        failures: failures of the run other than those of the jobs.
        cycles: cycles of the run; None: the sum over all jobs.
        ideal_cycles, hbm_cycles, details, judge: see `run.report.Report`.
        settings: values that the report shows; None: all of them.
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
        streamed: whether `rows` consumes the results one by one during the execution; each then frees its memories.
    """

    jobs: Callable[[Settings], Jobs]
    rows: Callable[[Settings, Sequence[Result]], Rows]
    timed: bool = True
    streamed: bool = False
    run: Callable[[Settings], Report] = field(init=False)

    def __post_init__(self):
        object.__setattr__(self, "run", partial(_report, self))
        super().__post_init__()


def run_jobs(jobs: Jobs, on: Target) -> Iterator[Result]:
    """Execute jobs one after another and yield their results; a generator of jobs receives each of them."""
    steps, result = iter(jobs), None
    while True:
        try:
            job = steps.send(result) if hasattr(steps, "send") else next(steps)
        except StopIteration:
            return
        result = execute(job, on)
        yield result


def _report(test: Scenario, settings: Settings) -> Report:
    target, sums, failures = target_of(settings), Counter(), []

    def summed() -> Iterator[Result]:
        for one in run_jobs(test.jobs(settings), target):
            sums.update(compared=one.compared, mismatches=one.mismatches, cycles=one.cycles or 0)
            sums.update(predicted=one.prediction is not None, timed=one.cycles is not None)
            failures.append(one.failures)
            yield one

    try:
        found = test.rows(settings, summed() if test.streamed else [*summed()])
    except ProgramFailed as failure:
        found = Rows(label=target.name, failures=str(failure).splitlines())
    names = [f"{name}: " for name in found.names] or [""] * len(failures)
    said = [f"{name}{failure}" for name, several in zip(names, failures, strict=True) for failure in several]
    cycles = found.cycles if found.cycles is not None else sums["cycles"] if sums["timed"] else None
    predicted = sums["predicted"] > 0
    return Report(
        test=test.name,
        label=f"model-{found.label}" if predicted else found.label,
        settings=dict(settings.values if found.settings is None else found.settings),
        compared=found.compared + sums["compared"],
        mismatches=found.mismatches + sums["mismatches"],
        cycles=cycles if test.timed else None,
        ideal_cycles=found.ideal_cycles,
        hbm_cycles=found.hbm_cycles,
        extra=found.rows,
        failures=(*said, *found.failures),
        details=found.details,
        modelled=predicted or target.name == "golden",
        judge=found.judge,
    )
