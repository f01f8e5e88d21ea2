"""Numbers of a sweep: default and chosen measures, statistics over seeds, ratios."""

from statistics import stdev

import pytest

from neuroncore_rtl.run.settings import UsageError
from neuroncore_rtl.tb.campaign import summary


def run(seed, rate, loss, **more):
    row = {"test": "train", "status": "passed", "SEED": seed, "RATE": rate, "cycles": 100 * rate, "loss.sr.last": loss}
    return {**row, "accuracy": 0.5, "busy.tensor": loss, "steps.1.loss": loss, "word": "x", "right": True, **more}


ROWS = [run(seed, rate, float(seed * rate)) for rate in (1, 3) for seed in (1, 2, 4)]
SWEPT = ("RATE", "SEED")


def test_the_usual_measures_are_the_numbers_that_vary():
    assert summary.shown_measures(ROWS, ()) == ["cycles", "loss.sr.last"]
    many = [{**row, **{f"m{n}": row["SEED"] for n in range(9)}} for row in ROWS]
    assert len(summary.shown_measures(many, ())) == 1 + summary.MOST


def test_chosen_measures_include_all_below_their_name():
    assert summary.shown_measures(ROWS, ("accuracy", "loss")) == ["cycles", "accuracy", "loss.sr.last"]
    assert summary.shown_measures(ROWS, ("busy", "acc")) == ["cycles", "busy.tensor"]
    with pytest.raises(UsageError, match="a name in measures must be one of .*, not 'acuracy'; did you mean accuracy"):
        summary.check_measures(ROWS, ("loss", "acuracy"))
    summary.check_measures([], ("los",))  # all runs of the sweep broke


def test_statistics_over_the_seeds():
    first, second = summary.statistics_of(ROWS, SWEPT, ["loss.sr.last"])
    assert second == {
        "test": "train", "RATE": 3, "measure": "loss.sr.last", "runs": 3, "mean": 7, "deviation": stdev([3, 6, 12]),
        "min": 3, "max": 12, "ratio": None,
    }  # fmt: skip
    assert first["RATE"] == 1 and first["mean"] == pytest.approx(7 / 3)
    (alone,) = summary.statistics_of(ROWS[:1], SWEPT, ["loss.sr.last"])
    assert (alone["runs"], alone["deviation"]) == (1, None)


def test_ratios_are_to_the_run_with_the_same_seed():
    found = summary.with_ratios(ROWS, SWEPT, ["cycles", "loss.sr.last"], {"RATE": 1})
    assert [row["cycles_ratio"] for row in found] == [1, 1, 1, 3, 3, 3]
    assert [row["loss.sr.last_ratio"] for row in found] == [1, 1, 1, 3, 3, 3]
    assert [line["ratio"] for line in summary.statistics_of(found, SWEPT, ["cycles"])] == [1, 3]


@pytest.mark.parametrize("base", [run(1, 1, 0.0), run(1, 1, None), run(1, 1, 2.0, status="broken"), run(2, 1, 2.0)])
def test_there_is_no_ratio_without_a_value_to_compare_with(base):
    _, found = summary.with_ratios([base, run(1, 3, 3.0)], SWEPT, ["loss.sr.last"], {"RATE": 1})
    assert found["loss.sr.last_ratio"] is None
