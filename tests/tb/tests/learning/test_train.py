"""Training of the digits network on the RTL."""

from dataclasses import replace

from neuroncore_rtl.tb.tests.learning import train
from tests.tb.reports import passed, report_of

SMALL = "PRESET=tiny HIDDEN=4 BATCH=6 RATE=20000 STEPS=6"


def test_training_on_the_core():
    report = passed("train", f"{SMALL} ROUND=sr STALL=30")
    assert report.compared > 200_000
    assert set(report.rows["accuracy after"]) == {"sr", "float64"}


def test_curves_of_both_roundings_by_golden():
    report = report_of("train", f"{SMALL} TARGET=model")
    assert report.modelled and not report.problems and report.cycles > 0
    ends = report.rows["loss, first and last quarter"]
    assert set(ends) == {"sr", "rne", "float64"} and ends["sr"] != ends["rne"]


def test_a_network_that_does_not_learn_fails_the_bench(monkeypatch):
    def task_of(settings, task_of=train.task_of):
        task = task_of(settings)
        return replace(task, options=replace(task.options, rate=-task.options.rate))

    monkeypatch.setattr(train, "task_of", task_of)
    report = report_of("train", f"{SMALL} TARGET=model ROUND=rne")
    assert len(report.problems) == 1 and report.problems[0].startswith("rne: the loss must fall, but is")
