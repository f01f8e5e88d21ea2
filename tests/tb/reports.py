"""Reports of TESTs, run as by `make sim`."""

from neuroncore_rtl.run.report import Report
from neuroncore_rtl.tb.cli.registry import command_named

__all__ = ["passed", "report_of"]


def report_of(test: str, words: str = "") -> Report:
    """Run a TEST with variables, NAME=VALUE, and return its report."""
    bench = command_named(test)
    return bench.run(bench.settings(words.split()))


def passed(test: str, words: str = "") -> Report:
    report = report_of(test, words)
    assert report.problems == []
    return report
