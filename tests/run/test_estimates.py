"""Estimates beside activities come from earlier durations of this machine, or from the size of the design."""

import json
import threading
import time

import pytest

from neuroncore_rtl.run import estimates, monitor, report
from neuroncore_rtl.run.estimates import RATES, Forecast, estimate, remark, remember


@pytest.fixture(autouse=True)
def file(tmp_path, monkeypatch):
    monkeypatch.setattr(estimates, "FILE", tmp_path / "new" / "durations.json")
    return estimates.FILE


def test_a_duration_is_remembered_and_scaled():
    assert estimate("work", 4) is None
    remember("work", 20, 4)
    remember("work", 300, 100)
    assert [estimate("work", size) for size in (4, 8, 100, 200)] == [20, 40, 300, 600]
    remember("work", 26, 4)
    assert estimate("work", 4) == 26
    assert estimate("other", 4) is None


def test_a_design_that_was_never_built_is_estimated_from_its_size():
    assert estimate("build verilator", 1e6) == pytest.approx(RATES["build verilator"] * 1e6)
    assert estimate("elaborating core of 4x4") == RATES["elaborating core"]
    assert estimate("elaborating core_part") is None
    remember("build verilator", 80, 2e6)
    assert estimate("build verilator", 1e6) == 40


def test_short_activities_are_not_recorded(file):
    remember("blink", 1, 1)
    assert not file.exists()
    remember("work", 30, 1)
    remember("work", 2, 1)  # it became fast, and the estimate disappears
    assert remark(estimate("work", 1)) == ""


@pytest.mark.parametrize("content", ["", "[1]", '{"work": 3}', '{"work": {"x": 3}}', '{"work": {"1": null}}', "\0"])
def test_a_damaged_file_is_ignored(file, content):
    file.parent.mkdir()
    file.write_text(content)
    assert estimate("work", 1) is None
    remember("work", 30, 1)
    assert json.loads(file.read_text()) == {"work": {"1": 30}}


def test_remarks():
    texts = [remark(seconds) for seconds in (None, 3, 25.4, 99, 500)]
    assert texts == ["", "", " (about 25 s)", " (about 99 s)", " (about 8 min)"]


def test_progress_shows_the_estimate_and_remembers(file, monkeypatch, capsys):
    now = iter([100, 125, 200, 231])
    monkeypatch.setattr(report.time, "monotonic", lambda: next(now))
    for _ in range(2):
        with report.progress("building the simulator", "build of mine", 10):
            pass
    assert capsys.readouterr().err.splitlines() == [
        "building the simulator ...",
        "building the simulator: 25.0 s",
        "building the simulator (about 25 s) ...",
        "building the simulator: 31.0 s",
    ]
    assert json.loads(file.read_text()) == {"build of mine": {"10": 31}}


def test_a_forecast_ignores_what_happens_once():
    forecast = Forecast()
    # A compilation of 9 s, then 1 % a second.
    found = [forecast.look(10 + seconds, seconds / 100 + 0.01) for seconds in range(5)]
    assert found == [None, None, *[pytest.approx(109)] * 3]
    assert forecast.look(20, 0.05) is None  # no progress


@pytest.mark.parametrize("step, lines", [(0.0001, 1), (0.0, 0), (0.3, 0)])
def test_progress_foretells_its_duration_from_what_is_done(step, lines, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(monitor, "PERIOD", 0.02)
    monkeypatch.setattr(monitor, "FOLDER", tmp_path)
    looks, threads = [], threading.active_count()
    with report.progress("work", done=lambda: looks.append(step) or min(1, sum(looks))):
        while len(looks) < 6:
            time.sleep(0.01)
    first, *between, last = capsys.readouterr().err.splitlines()
    assert (first, last[:6], len(between)) == ("work ...", "work: ", lines)
    assert all(line.startswith("work (about ") for line in between)
    assert threading.active_count() == threads


def test_what_failed_is_not_remembered(file, monkeypatch):
    monkeypatch.setattr(report.time, "monotonic", iter(range(0, 1000, 100)).__next__)
    with pytest.raises(KeyError), report.progress("work"):
        raise KeyError
    assert not file.exists()
