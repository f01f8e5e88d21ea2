"""Shared parts of TESTs that play cases through an arithmetic unit."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from neuroncore_rtl.run.report import Report
from neuroncore_rtl.run.result import Result
from neuroncore_rtl.run.settings import Settings
from neuroncore_rtl.spec.formats import Format
from neuroncore_rtl.tb.check.comparison import Cases, Comparison, cases_of, used_settings
from neuroncore_rtl.tb.tests.scenario import Jobs

__all__ = ["played_jobs", "played_rows"]


def played_jobs(
    settings: Settings,
    read: Callable[[Path], Cases],
    draw: Callable[..., Cases],
    compare: Callable[..., Comparison],
    formats: Iterable[Format],
) -> Jobs:
    """Yield the job that plays the cases; see `tb.check.comparison.cases_of` for the arguments."""
    yield compare(cases_of(settings, read, draw, formats), file=settings.vectors).job()


def played_rows(settings: Settings, results: Sequence[Result], own: str, drawn: Sequence[str] = ()) -> Report:
    """Return the rows of a job of cases; see `tb.check.comparison.used_settings`."""
    (result,) = results
    found = result.job.subject.verdict(result.outcome)
    judged = {"compared": found.compared, "mismatches": found.mismatches, "failures": found.failures}
    return Report(settings=used_settings(settings, own, drawn), rows=found.rows, **judged)
