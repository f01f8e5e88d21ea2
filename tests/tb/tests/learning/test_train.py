"""Training of the digits network on the RTL."""

from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

from neuroncore_rtl.run.report import Share, recording_in
from neuroncore_rtl.tb.tests.learning import train
from tests.tb.reports import passed, report_of


@pytest.fixture(autouse=True)
def pictures(tmp_path):
    with recording_in(tmp_path):
        yield


SMALL = "PRESET=tiny HIDDEN=4 BATCH=6 RATE=20000 STEPS=6"


def test_training_on_the_core():
    report = passed("train", f"{SMALL} ROUND=sr STALL=30")
    assert report.compared > 200_000
    assert set(report.rows["accuracy"]) == {"sr", "float64"}


@pytest.mark.parametrize("target", ["model", "golden"])
def test_curves_of_both_roundings_are_numbers_in_the_record_and_beside_the_plot(target):
    report = report_of("train", f"{SMALL} TARGET={target}")
    assert report.modelled and not report.problems and (report.cycles is None) == (target == "golden")
    losses, ends = report.as_json()["curves"]["loss"], report.rows["loss"]
    assert set(losses) == set(ends) == {"sr", "rne", "float64"} and losses["sr"] != losses["rne"]
    for name, own in losses.items():
        assert len(own) == 6 and ends[name]["last_quarter"] == pytest.approx(sum(own[-2:]) / 2)
    assert 0 <= report.rows["accuracy_before"] <= 1 and isinstance(report.rows["accuracy"]["sr"], Share)
    data = duckdb.read_parquet(str(Path(report.rows["plot"]).with_suffix(".parquet")))
    assert data.project("step, rne").fetchall() == [*enumerate(losses["rne"], start=1)]
    assert len(Path(report.rows["data"]).read_text().splitlines()) == 7


def test_a_network_that_does_not_learn_fails_the_bench(monkeypatch):
    def task_of(settings, task_of=train.task_of):
        task = task_of(settings)
        return replace(task, options=replace(task.options, rate=-task.options.rate))

    monkeypatch.setattr(train, "task_of", task_of)
    report = report_of("train", f"{SMALL} TARGET=model ROUND=rne")
    assert len(report.problems) == 1 and report.problems[0].startswith("rne: the loss must fall, but is")
