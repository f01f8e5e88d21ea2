"""Training on the sonnets on the RTL."""

from dataclasses import replace

import pytest

from neuroncore_rtl.run.job import ImageJob
from neuroncore_rtl.run.report import recording_in
from neuroncore_rtl.run.settings import UsageError
from neuroncore_rtl.tb.tests.learning import charlm
from tests.tb.reports import passed, report_of

SMALL = "PROMPT=and TOKENS=3 PRESET=tiny SEQ=6 DIM=8 HEADS=2 HIDDEN=8 RATE=30000"


@pytest.fixture(autouse=True)
def pictures(tmp_path):
    with recording_in(tmp_path):
        yield


def test_learning_and_writing_on_the_core():
    report = passed("charlm", f"{SMALL} STEPS=3 STALL=30")
    steps, characters = report.rows["steps"], report.rows["characters"]
    assert [*steps] == ["1", "2", "3"] and [*characters] == ["3", "4", "5"]
    assert {row["golden"] for row in (*steps.values(), *characters.values())} == {"bit-exact"}
    assert sum(row["cycles"] for row in (*steps.values(), *characters.values())) < report.cycles
    assert report.rows["writes"].startswith("and") and len(report.rows["writes"]) == 6


def test_the_same_on_every_run_of_a_seed():
    reports = [report_of("charlm", f"{SMALL} TARGET=model STEPS=2 {words}") for words in ("", "", "SEED=2")]
    assert all(report.modelled and not report.problems and report.cycles > 0 for report in reports)
    steps = [report.rows["steps"] for report in reports]
    assert steps[0] == steps[1] != steps[2]
    losses = reports[0].as_json()["curves"]["loss"]
    assert losses["core"] == [row["loss"] for row in steps[0].values()] and len(losses["float64"]) == 2


def test_golden_gives_the_losses_of_the_timing_model_without_cycles():
    model, golden = (report_of("charlm", f"{SMALL} TARGET={target} STEPS=2") for target in ("model", "golden"))
    assert golden.modelled and not golden.problems and golden.cycles is None
    assert golden.curves == model.curves and golden.rows["writes"] == model.rows["writes"]
    assert "cycles" in model.rows["steps"]["1"] and "cycles" not in golden.rows["steps"]["1"]


def test_a_step_that_differs_has_it_in_its_line(monkeypatch):
    golden = ImageJob.golden

    def wrong(job):
        expected = golden(job)
        tensor = next(one for one in job.images[0].space.hbm_tensors if one.name == "losses")
        tensor.elements(expected.memories["hbm"][0])[7] += 1
        return expected

    monkeypatch.setattr(ImageJob, "golden", wrong)
    report = report_of("charlm", f"{SMALL} STEPS=4")
    assert report.mismatches == 1
    assert [row["golden"] == "bit-exact" for row in report.rows["steps"].values()] == [True, False, True, True]


def test_a_network_that_does_not_learn_fails_the_bench(monkeypatch):
    def task_of(settings, task_of=charlm.task_of):
        task = task_of(settings)
        return replace(task, options=replace(task.options, rate=-task.options.rate))

    monkeypatch.setattr(charlm, "task_of", task_of)
    report = report_of("charlm", f"{SMALL} TARGET=model STEPS=4")
    assert len(report.problems) == 1 and report.problems[0].startswith("the loss must fall, but is")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["PROMPT=caf\u00e9"], "PROMPT: characters must occur in the text, .*, not 'é' at position 4"),
        (["PROMPT="], "PROMPT must have from 1 to SEQ=64 characters, not 0"),
        (["PROMPT=Shall I", "SEQ=6"], "PROMPT must have from 1 to SEQ=6 characters, not 7"),
        (["PROMPT=Shall I", "SEQ=8", "TOKENS=3"], "TOKENS must be at most 2 with SEQ=8 and a prompt of .*, not 3"),
        (["HEADS=5"], "heads must divide the 32 features of a character, not 5"),
        (["STEPS=1"], "STEPS must be an integer from 2 to 10000, not '1'"),
        (["SEQ=1025"], "SEQ must be an integer from 2 to 1024, not '1025'"),
        (["DIM=4096", "HIDDEN=16384", "LAYERS=32"], "tensors in HBM must have at most 536,870,912 bytes"),
    ],
)
def test_refusals(words, said):
    with pytest.raises(UsageError, match=said):
        charlm.TEST.run(charlm.TEST.settings(words))
