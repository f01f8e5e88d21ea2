"""Plots of rows."""

from math import inf, isnan, nan
from statistics import stdev

import duckdb
import pytest

from neuroncore_rtl.run.report import Report, Share
from neuroncore_rtl.tb.campaign import plots
from neuroncore_rtl.tb.campaign.summary import row_of


def product(size, bandwidth, seed=1, cycles=None):
    ideal = size**3 // 256
    cycles = cycles or 2 * ideal
    return {
        "test": "matmul", "status": "passed", "M": size, "K": size, "BANDWIDTH": bandwidth, "SEED": seed,
        "cycles": cycles, "ideal_cycles": ideal, "hbm_cycles": size, "utilisation": ideal / cycles,
    }  # fmt: skip


SWEPT = ("M", "K", "BANDWIDTH", "SEED")
PRODUCTS = [product(size, bandwidth) for size in (16, 64) for bandwidth in (0, 8)]
SUMS = [
    {"test": "allreduce", "status": "passed", "CHIPS": n, "cycles": 9, "ring_bound_cycles": 3, "utilisation": 1 / 3}
    for n in (2, 4)
]


@pytest.fixture
def figures_drawn(monkeypatch):
    figures, write = [], plots.write_plot
    monkeypatch.setattr(plots, "write_plot", lambda figure, *others: figures.append(figure) or write(figure, *others))
    return figures


def lines(axes):
    return {line.get_label(): (list(line.get_xdata()), list(line.get_ydata())) for line in axes.get_lines()}


def test_cycles_and_utilisation_over_the_size(tmp_path, figures_drawn):
    rows = [*PRODUCTS, product(64, 8, 2, 4096), product(64, 8, 3, 4096)]
    assert plots.draw_sizes(tmp_path / "a.png", rows, SWEPT).is_file()
    left, right = figures_drawn[0].axes
    assert left.get_xlabel() == "M = K"
    assert [text.get_text() for text in left.get_xticklabels()] == ["16", "64"]
    places, means = lines(left)["BANDWIDTH 8"]
    assert means == [32, pytest.approx((2048 + 4096 + 4096) / 3)] and places[0] > 0  # beside the other line
    assert lines(right)["BANDWIDTH 0"] == ([0, 1], [50, 50])
    data = duckdb.read_parquet(str(tmp_path / "a.parquet")).filter("measure = 'cycles' and series = 'BANDWIDTH 8'")
    found = data.project("M, K, runs, mean, deviation, min, max, bound").fetchall()
    assert found[0] == (16, 16, 1, 32, None, 32, 32, 16)
    assert found[1] == (64, 64, 3, *map(pytest.approx, (10240 / 3, stdev([2048, 4096, 4096]), 2048, 4096, 1024)))


def test_the_roofline(tmp_path, figures_drawn):
    assert plots.draw_campaign_roofline(tmp_path / "a.png", PRODUCTS, SWEPT).is_file()
    (axes,) = figures_drawn[0].axes
    assert lines(axes)["BANDWIDTH 8"] == ([1, 16], [50, 50])
    assert [text.get_text() for text in axes.texts].count("64") == 2  # each point has the value of its size


def test_collectives_over_chips(tmp_path, figures_drawn):
    assert plots.draw_chips(tmp_path / "a.png", SUMS, ("CHIPS",)).is_file()
    left, right = figures_drawn[0].axes
    assert ([0, 1], [3, 3]) in lines(left).values() and ([0, 1], [9, 9]) in lines(left).values()
    [(_, shares)] = lines(right).values()
    assert shares == pytest.approx([100 / 3, 100 / 3])


def test_many_combinations_are_cut_and_the_title_says_so(tmp_path, figures_drawn):
    rows = [product(size, bandwidth) for size in (16, 32) for bandwidth in range(12)]
    plots.draw_sizes(tmp_path / "a.png", rows, SWEPT)
    assert "the first 10 of 12 combinations" in figures_drawn[0].get_suptitle()
    assert sum(label.startswith("BANDWIDTH") for label in lines(figures_drawn[0].axes[1])) == 10


def training(seed, rate, loss, failed=False):
    curves = {"loss": {"sr": [3.0, loss], "rne": [3.0, 2 * loss]}}
    row = {"loss.sr.last": loss, "loss.rne.last": 2 * loss, "accuracy": None if failed else loss / 4, "curves": curves}
    return {"test": "train", "status": "passed", "cycles": None, "SEED": seed, "RATE": rate, "utilisation": None, **row}


TRAININGS = [training(seed, rate, seed * rate) for seed in (1, 2, 3) for rate in (1, 2)]
MEASURES = ("loss.sr.last", "loss.rne.last", "accuracy")


def test_a_panel_has_the_measures_of_a_quantity(tmp_path, figures_drawn):
    assert plots.draw_measures(tmp_path / "a.png", TRAININGS, ("RATE", "SEED"), MEASURES).is_file()
    loss, accuracy = figures_drawn[0].axes
    assert (loss.get_title("left"), accuracy.get_title("left")) == ("loss, last", "accuracy")
    assert {label: own[1] for label, own in lines(loss).items() if label in ("sr", "rne")} == {
        "sr": [2, 4], "rne": [4, 8],
    }  # fmt: skip
    assert "mean over 3 seeds" in figures_drawn[0].get_suptitle()


def test_without_another_variable_the_axis_is_the_seed(tmp_path, figures_drawn):
    rows = [row for row in TRAININGS if row["RATE"] == 1]
    plots.draw_measures(tmp_path / "a.png", rows, ("SEED",), MEASURES)
    loss, _ = figures_drawn[0].axes
    assert loss.get_xlabel() == "SEED" and lines(loss)["sr"] == ([0, 1, 2], [1, 2, 3])
    assert [2, 2] in [own[1] for own in lines(loss).values()]  # the mean, across the panel


def test_a_missing_value_is_a_gap(tmp_path, figures_drawn):
    rows = [training(1, rate, rate, failed=rate == 2) for rate in (1, 2, 3)]
    plots.draw_measures(tmp_path / "a.png", rows, ("RATE",), ("accuracy",))
    [(_, values)] = lines(figures_drawn[0].axes[0]).values()
    assert values[0] == 0.25 and isnan(values[1]) and values[2] == 0.75


def test_curves_have_means_and_spread_and_all_runs_in_their_data(tmp_path, figures_drawn):
    assert plots.draw_curves(tmp_path / "a.png", TRAININGS, ("RATE", "SEED")).is_file()
    (axes,) = figures_drawn[0].axes
    assert lines(axes)["rne, RATE 2"] == ([1, 2], [3, 8]) and len(axes.collections) == 4
    data = duckdb.read_parquet(str(tmp_path / "a.parquet"))
    found = data.filter("RATE = 2 and step = 2").project('SEED, "loss.sr", "loss.rne"').fetchall()
    assert found == [(1, 2, 4), (2, 4, 8), (3, 6, 12)] and data.shape[0] == 12


def test_no_text_is_outside_the_picture(tmp_path, figures_drawn):
    names = "a_variable_with_a_long_name", "another_variable_with_a_long_name"
    rows = [
        {**product(size, 0), names[0]: first * 10**9, names[1]: "z" * second}
        for size in (16, 64, 1024) for first in (1, 2) for second in (1, 9)
    ]  # fmt: skip
    plots.draw_sizes(tmp_path / "a.png", rows, ("M", *names))
    figure = figures_drawn[0]
    figure.draw_without_rendering()
    box = figure.get_tightbbox()  # of all texts and lines that are drawn, in inches
    assert min(box.x0, box.y0) >= 0 and (box.x1 <= figure.get_figwidth()) and (box.y1 <= figure.get_figheight())
    assert len(figure.legends[0].get_texts()) == 4


@pytest.mark.parametrize(
    "draw", [plots.draw_sizes, plots.draw_measures, plots.draw_curves, plots.draw_campaign_roofline, plots.draw_chips]
)
def test_there_is_no_picture_without_its_columns(tmp_path, draw):
    broken = {"test": "mac", "status": "broken", "failure": "it broke", "DTYPE": "bf16"}
    empty = {**broken, "status": "passed", "cycles": None, "utilisation": None}
    for rows in ([], [broken], [empty, {**empty, "DTYPE": "fp16"}, broken]):
        assert draw(tmp_path / "a.png", rows, ("DTYPE", "M"), ("cycles",)) is None
    assert list(tmp_path.iterdir()) == []


def test_the_row_of_a_report():
    report = Report(
        test="softmax", label="", settings={"M": 4, "DTYPE": None}, compared=8, mismatches=1, cycles=20,
        ideal_cycles=10, rows={"busy": {"tensor": Share(0.125)}, "dma bytes": {"read_bytes": 3}, "what": "x",
              "far": inf, "lines": [{"line": "a.py:5", "cycles": 7}]},
        curves={"loss": {"sr": [2.0, nan]}},
    )  # fmt: skip
    assert row_of(report) == {
        "test": "softmax", "M": 4, "DTYPE": None, "cycles": 20, "ideal_cycles": 10, "hbm_cycles": None,
        "utilisation": 0.5, "compared": 8, "mismatches": 1, "bit_exact": False, "modelled": False, "busy.tensor": 0.125,
        "dma_bytes.read_bytes": 3, "what": "x", "far": None, "lines.a.py:5.cycles": 7,
        "curves": {"loss": {"sr": [2.0, None]}}, "failure": "1 of 8 results differ from the golden model",
    }  # fmt: skip
