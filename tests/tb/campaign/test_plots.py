"""Plots of rows."""

import pytest

from neuroncore_rtl.run.report import Report, Share
from neuroncore_rtl.tb.campaign import plots
from neuroncore_rtl.tb.campaign.rows import row_of


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
    figures, saved = [], plots._saved
    monkeypatch.setattr(plots, "_saved", lambda figure, *others: figures.append(figure) or saved(figure, *others))
    return figures


def lines(axes):
    return {line.get_label(): (list(line.get_xdata()), list(line.get_ydata())) for line in axes.get_lines()}


def test_cycles_and_utilisation_over_the_size(tmp_path, figures_drawn):
    rows = [*PRODUCTS, product(64, 8, 2, 4096), product(64, 8, 3, 4096)]
    assert plots.draw_sizes(tmp_path / "a.png", rows, SWEPT).is_file()
    left, right = figures_drawn[0].axes
    assert left.get_xlabel() == "M = K"
    assert lines(left)["BANDWIDTH 8"] == ([16, 64], [32, 4096])  # the median of three seeds
    assert lines(right)["BANDWIDTH 0"] == ([16, 64], [50, 50])


def test_the_roofline(tmp_path, figures_drawn):
    assert plots.draw_campaign_roofline(tmp_path / "a.png", PRODUCTS, SWEPT).is_file()
    assert lines(figures_drawn[0].axes[0])["BANDWIDTH 8"] == ([1, 16], [50, 50])


def test_collectives_over_chips(tmp_path, figures_drawn):
    assert plots.draw_chips(tmp_path / "a.png", SUMS, ("CHIPS",)).is_file()
    left, right = figures_drawn[0].axes
    assert ([2, 4], [3, 3]) in lines(left).values() and ([2, 4], [9, 9]) in lines(left).values()
    [(_, shares)] = lines(right).values()
    assert shares == pytest.approx([100 / 3, 100 / 3])


def test_many_combinations_are_cut_and_the_title_says_so(tmp_path, figures_drawn):
    rows = [product(size, bandwidth) for size in (16, 32) for bandwidth in range(12)]
    plots.draw_sizes(tmp_path / "a.png", rows, SWEPT)
    assert "the first 10 of 12 combinations" in figures_drawn[0].get_suptitle()
    assert sum(label.startswith("BANDWIDTH") for label in lines(figures_drawn[0].axes[1])) == 10


@pytest.mark.parametrize("draw", [plots.draw_sizes, plots.draw_campaign_roofline, plots.draw_chips])
def test_there_is_no_picture_without_its_columns(tmp_path, draw):
    broken = {"test": "mac", "status": "broken", "failure": "it broke", "DTYPE": "bf16"}
    empty = {**broken, "status": "passed", "cycles": None, "utilisation": None}
    for rows in ([], [broken], [empty, {**empty, "DTYPE": "fp16"}, broken]):
        assert draw(tmp_path / "a.png", rows, ("DTYPE", "M")) is None
    assert list(tmp_path.iterdir()) == []


def test_the_row_of_a_report():
    report = Report(
        test="softmax", label="", settings={"M": 4, "DTYPE": None}, compared=8, mismatches=1, cycles=20,
        ideal_cycles=10, rows={"busy": {"tensor": Share(0.125)}, "dma bytes": {"read_bytes": 3}, "what": "x",
              "far": float("inf"), "lines": [{"line": "a.py:5", "cycles": 7}]},
    )  # fmt: skip
    assert row_of(report) == {
        "test": "softmax", "M": 4, "DTYPE": None, "cycles": 20, "ideal_cycles": 10, "hbm_cycles": None,
        "utilisation": 0.5, "compared": 8, "mismatches": 1, "bit_exact": False, "modelled": False, "busy.tensor": 0.125,
        "dma_bytes.read_bytes": 3, "what": "x", "far": None,
        "lines.a.py:5.cycles": 7, "failure": "1 of 8 results differ from the golden model",
    }  # fmt: skip
