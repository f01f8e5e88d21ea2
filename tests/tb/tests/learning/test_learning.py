"""Training on the sonnets and of the digits network on the RTL, and the language model in float64."""

from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pytest

from neuroncore_rtl.kernels.models.charlm.network import Sizes, initial_charlm
from neuroncore_rtl.kernels.training.adamw import AdamW
from neuroncore_rtl.run.job import ImageJob
from neuroncore_rtl.run.report import Share, recording_in
from neuroncore_rtl.run.settings import UsageError
from neuroncore_rtl.tb.tests.learning import charlm, language_model, train
from tests.oracles.slopes import slopes_of
from tests.tb.reports import passed, report_of

CHARLM = "PROMPT=and TOKENS=3 PRESET=tiny SEQ=6 DIM=8 HEADS=2 HIDDEN=8 RATE=30000"
TRAIN = "PRESET=tiny HIDDEN=4 BATCH=6 RATE=20000 STEPS=6"
SIZES = Sizes(characters=5, context=4, features=4, heads=2, hidden=3, layers=2)


@pytest.fixture(autouse=True)
def pictures(tmp_path):
    with recording_in(tmp_path):
        yield


def test_learning_and_writing_on_the_core():
    report = passed("charlm", f"{CHARLM} STEPS=3 STALL=30")
    steps, characters = report.rows["steps"], report.rows["characters"]
    assert [*steps] == ["1", "2", "3"] and [*characters] == ["3", "4", "5"]
    assert {row["golden"] for row in (*steps.values(), *characters.values())} == {"bit-exact"}
    assert sum(row["cycles"] for row in (*steps.values(), *characters.values())) < report.cycles
    assert report.rows["writes"].startswith("and") and len(report.rows["writes"]) == 6


def test_a_seed_gives_the_same_on_the_timing_model_and_on_golden():
    words = ("TARGET=model", "TARGET=golden", "TARGET=model SEED=2")
    reports = [report_of("charlm", f"{CHARLM} STEPS=2 {word}") for word in words]
    assert all(report.modelled and not report.problems for report in reports)
    model, golden, other = reports
    losses = model.as_json()["curves"]["loss"]
    assert losses["core"] == [row["loss"] for row in model.rows["steps"].values()] and len(losses["float64"]) == 2
    assert golden.curves == model.curves != other.curves and golden.rows["writes"] == model.rows["writes"]
    assert model.cycles > 0 and golden.cycles is None
    assert "cycles" in model.rows["steps"]["1"] and "cycles" not in golden.rows["steps"]["1"]


def test_a_step_that_differs_has_it_in_its_line(monkeypatch):
    golden = ImageJob.golden

    def wrong(job):
        expected = golden(job)
        tensor = next(one for one in job.images[0].space.hbm_tensors if one.name == "losses")
        tensor.elements(expected.memories["hbm"][0])[7] += 1
        return expected

    monkeypatch.setattr(ImageJob, "golden", wrong)
    report = report_of("charlm", f"{CHARLM} STEPS=3")
    assert report.mismatches == 1
    assert [row["golden"] == "bit-exact" for row in report.rows["steps"].values()] == [True, False, True]


@pytest.mark.parametrize(
    ("test", "words", "said"), [(charlm, f"{CHARLM} STEPS=4", ""), (train, f"{TRAIN} ROUND=rne", "rne: ")]
)
def test_a_network_that_does_not_learn_fails_the_bench(test, words, said, monkeypatch):
    def task_of(settings, task_of=test.task_of):
        task = task_of(settings)
        return replace(task, options=replace(task.options, rate=-task.options.rate))

    monkeypatch.setattr(test, "task_of", task_of)
    report = report_of(test.TEST.name, f"{words} TARGET=golden")
    assert len(report.problems) == 1 and report.problems[0].startswith(f"{said}the loss must fall, but is")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["PROMPT=caf\u00e9"], "PROMPT: characters must occur in the text, .*, not 'é' at position 4"),
        (["PROMPT="], "PROMPT must have from 1 to SEQ=64 characters, not 0"),
        (["PROMPT=Shall I", "SEQ=6"], "PROMPT must have from 1 to SEQ=6 characters, not 7"),
        (["PROMPT=Shall I", "SEQ=8", "TOKENS=3"], "TOKENS must be at most 2 with SEQ=8 and a prompt of .*, not 3"),
        (["HEADS=5"], "heads must divide the 32 features of a character, not 5"),
        (["DIM=4096", "HIDDEN=16384", "LAYERS=32"], "tensors in HBM must have at most 536,870,912 bytes"),
    ],
)
def test_refusals(words, said):
    with pytest.raises(UsageError, match=said):
        charlm.TEST.run(charlm.TEST.settings(words))


def test_training_on_the_core():
    report = passed("train", f"{TRAIN} ROUND=sr STALL=30")
    assert report.compared > 200_000
    assert set(report.rows["accuracy"]) == {"sr", "float64"}


def test_curves_of_both_roundings_are_numbers_in_the_record_and_beside_the_plot():
    report = report_of("train", f"{TRAIN} TARGET=golden")
    assert report.modelled and not report.problems and report.cycles is None
    losses, ends = report.as_json()["curves"]["loss"], report.rows["loss"]
    assert set(losses) == set(ends) == {"sr", "rne", "float64"} and losses["sr"] != losses["rne"]
    for name, own in losses.items():
        assert len(own) == 6 and ends[name]["last_quarter"] == pytest.approx(sum(own[-2:]) / 2)
    assert 0 <= report.rows["accuracy_before"] <= 1 and isinstance(report.rows["accuracy"]["sr"], Share)
    data = duckdb.read_parquet(str(Path(report.rows["plot"]).with_suffix(".parquet")))
    assert data.project("step, rne").fetchall() == [*enumerate(losses["rne"], start=1)]
    assert len(Path(report.rows["data"]).read_text().splitlines()) == 7


def test_gradients_are_those_of_finite_differences(rng):
    # Nonzero biases, and normalisations that have an effect.
    parameters = {name: value + rng.normal(0, 0.3, value.shape) for name, value in initial_charlm(rng, SIZES).items()}
    window = np.array([1, 4, 1, 0, 2])
    loss, found = language_model.gradients(parameters, SIZES, window)
    assert loss == language_model.losses(parameters, SIZES, window).mean()
    assert {name: value.shape for name, value in found.items()} == SIZES.shapes()
    expected = slopes_of(lambda: language_model.losses(parameters, SIZES, window).mean(), *parameters.values())
    for name, slope in zip(parameters, expected, strict=True):
        np.testing.assert_allclose(found[name], slope, rtol=1e-4, atol=1e-8)


def test_a_text_that_repeats_is_learned_and_written(rng):
    text = np.resize([3, 0, 4, 1], 40)
    start = initial_charlm(rng, SIZES)
    windows = text[rng.integers(0, 30, (80, 2))[..., None] + np.arange(5)]
    losses, parameters = language_model.trained(start, SIZES, windows, AdamW(rate=0.03))
    assert losses[-1] < 0.2 < 1 < losses[0]
    assert list(language_model.written_text(parameters, SIZES, np.array([0, 4]), 3)) == [1, 3, 0]
