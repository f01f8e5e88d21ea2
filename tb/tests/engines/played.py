"""TESTs that play random cases, or those of a vector file, through a unit of arithmetic."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from neuroncore_rtl.run.result import Result
from neuroncore_rtl.run.settings import Settings
from neuroncore_rtl.spec.formats import Format
from neuroncore_rtl.tb.check.comparison import Cases, Comparison, cases_of, record_label
from neuroncore_rtl.tb.tests.scenario import Jobs, Rows

__all__ = ["played_jobs", "played_rows"]


def played_jobs(
    settings: Settings,
    read: Callable[[Path], Cases],
    draw: Callable[..., Cases],
    compare: Callable[..., Comparison],
    formats: Iterable[Format],
) -> Jobs:
    """Yield the job that plays the cases; arguments as of :func:`tb.check.comparison.cases_of`.

    Arguments (further):
        compare: returns the comparison of cases that came from a `file`, or from none.
    """
    yield compare(cases_of(settings, read, draw, formats), file=settings.vectors).job()


def played_rows(settings: Settings, results: Sequence[Result], own: str, drawn: Sequence[str] = ()) -> Rows:
    """Return the rows of a job of cases; `own`, `drawn` as of :func:`tb.check.comparison.record_label`."""
    (result,) = results
    found = result.job.subject.verdict(result.outcome)
    label, used = record_label(settings, own, drawn)
    judged = {"compared": found.compared, "mismatches": found.mismatches, "failures": found.failures}
    return Rows(label=label, settings=used, rows=found.rows, **judged)
