"""TEST as data: variables, jobs, and a function that judges the jobs' results."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from neuroncore_rtl.run.job import Job
from neuroncore_rtl.run.program import ProgramFailed
from neuroncore_rtl.run.report import Report
from neuroncore_rtl.run.result import Result
from neuroncore_rtl.run.settings import Command, Settings
from neuroncore_rtl.run.sim import packages
from neuroncore_rtl.run.targets import TARGET_VARIABLES, Target, execute, target_of

__all__ = ["Jobs", "Scenario", "run_jobs"]

Jobs = Iterable[Job]


@dataclass(frozen=True, kw_only=True)
class Scenario(Command):
    """A TEST: `jobs` makes the jobs of settings, and `rows` judges their results, see `Report`.

    `timed` says whether the report has cycles. `streamed` says whether `rows` consumes the results one by one during
    the execution; each result then frees its memories.
    """

    jobs: Callable[[Settings], Jobs]
    rows: Callable[[Settings, Sequence[Result]], Report]
    timed: bool = True
    streamed: bool = False
    run: Callable[[Settings], Report] = field(init=False)

    def __post_init__(self):
        object.__setattr__(self, "run", partial(_report, self))
        super().__post_init__()


def run_jobs(jobs: Jobs, on: Target, name: Callable[[str], str] = str) -> Iterator[Result]:
    """Execute jobs one after another and yield their results.

    `name` returns the name of a job's files from the job's own name, if it has one.
    """
    for job in jobs:
        yield execute(job if job.name is None else replace(job, name=name(job.name)), on)


def _report(test: Scenario, settings: Settings) -> Report:
    target, sums, failures = target_of(settings.some(TARGET_VARIABLES)), Counter(), []
    name = partial(settings.file_name, test.name)
    if "PRESET" in settings.values:
        # The first program of a new environment waits for the compiler of control programs.
        packages.meanwhile = partial(target.prepare, settings.config)

    def summed() -> Iterator[Result]:
        for one in run_jobs(test.jobs(settings), target, name):
            sums.update(compared=one.compared, mismatches=one.mismatches, cycles=one.cycles or 0)
            sums.update(predicted=one.prediction is not None, timed=one.cycles is not None)
            failures.append(one.failures)
            yield one

    try:
        found = test.rows(settings, summed() if test.streamed else [*summed()])
    except ProgramFailed as failure:
        found = Report(failures=str(failure).splitlines())
    names = [f"{name}: " for name in found.names] or [""] * len(failures)
    said = [f"{name}{failure}" for name, several in zip(names, failures, strict=True) for failure in several]
    predicted, cycles = sums["predicted"] > 0, sums["cycles"] if sums["timed"] else None
    return replace(
        found,
        test=test.name,
        label=settings.label,
        settings=found.settings or settings.values,
        compared=found.compared + sums["compared"],
        mismatches=found.mismatches + sums["mismatches"],
        cycles=(cycles if found.cycles is None else found.cycles) if test.timed else None,
        failures=(*said, *found.failures),
        modelled=predicted or target.name == "golden",
        config=settings.config if "PRESET" in settings.values else None,
    )
