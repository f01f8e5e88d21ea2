"""A TEST, run as `make sim` does: its report, and where what it records goes."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from neuroncore_rtl.tb.benches import execution, profiled
from neuroncore_rtl.tb.cli.registry import bench_named
from neuroncore_rtl.tb.sim.report import Report
from neuroncore_rtl.tb.view import waves

__all__ = ["passed", "recording_under", "report_of"]


def report_of(test: str, words: str = "") -> Report:
    """Run a TEST with variables, given as NAME=VALUE apart by blanks, and return its report."""
    bench = bench_named(test)
    return bench.run(bench.settings(words.split()))


def passed(test: str, words: str = "") -> Report:
    """Run a TEST, which must compare something and find nothing wrong; return its report."""
    report = report_of(test, words)
    assert report.problems == []
    return report


@contextmanager
def recording_under(directory: Path) -> Iterator[None]:
    """Let TESTs record waveforms, timelines, profiles and pictures under a directory that others do not write."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(waves.waveform, "__defaults__", (directory,))
        patch.setattr(profiled.profiles, "__defaults__", (directory,))
        patch.setattr(execution, "SIM_BUILD", directory)
        yield
