"""Page of a run: its data are those of the record, the profile and the timeline."""

import json
from dataclasses import replace
from itertools import groupby
from operator import itemgetter

import pytest

from neuroncore_rtl import run
from neuroncore_rtl.run.page.bars import bar_group, thin
from neuroncore_rtl.run.page.parts import MOST_PARTS, collect_parts
from neuroncore_rtl.run.report import recording_in
from neuroncore_rtl.run.view.profile.stalls import StallCause
from neuroncore_rtl.run.view.profile.tracks import hbm_occupancy
from neuroncore_rtl.run.view.timeline import Slice
from tests.run.page.pages import INPUTS, TEXT, data_of, product, wrong_page
from tests.run.view.recordings import Timeline


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Runs of the product by target, each with its page."""
    found = {}
    with recording_in(tmp_path_factory.mktemp("runs")):
        for target, profile in (("rtl", 0), ("rtl", 1), ("model", 1), ("golden", 0)):
            result = run(product, INPUTS, on=target, preset="tiny", profile=profile)
            found[target, profile] = result, data_of(result.report)
    return found


def bars_of(group) -> list[tuple]:
    """Return the bars of a group of a page: track, begin, length, name."""
    columns, texts = group["bars"], group["texts"]
    rows = zip(*(columns[key] for key in ("track", "begin", "end", "name")), strict=True)
    return sorted((group["tracks"][track], begin, end - begin, texts[name]) for track, begin, end, name in rows)


def slices_of(timeline: Timeline, group: str) -> list[tuple]:
    """Return the slices of a group of a timeline for Perfetto, in the form of `bars_of`."""
    own = {track: slices for (name, track), slices in timeline.slices.items() if name == group}
    return sorted((track, one["ts"], one["dur"], one["name"]) for track, slices in own.items() for one in slices)


def test_counters_are_those_of_the_result(made):
    result, data = made["rtl", 0]
    (part,) = data["parts"]
    queues = {name: {c: n for c, n in own.items() if c != "executing"} for name, own in part["queues"].items()}
    assert queues == result.stalls and len(queues) == 4
    assert {name: counts["executing"] > 0 for name, counts in part["queues"].items()} == dict.fromkeys(queues, True)
    assert "causes" not in part and [group["name"] for group in part["groups"]] == ["instructions"]
    assert data["record"]["cycles"] == part["cycles"] == result.cycles
    assert (data["verdict"], data["record"]["bit_exact"], data["wrong_tile"]) == ("passed", True, None)


@pytest.mark.parametrize("target", ["rtl", "model"])
def test_profile_is_on_the_page(made, target):
    result, data = made[target, 1]
    (part,), (summary,) = data["parts"], json.loads((result.profile / "summary.json").read_text()).values()
    assert part["causes"] == summary["stalls"]
    assert part["causes"][result.busiest] == result.causes and sum(result.causes.values()) == result.cycles
    assert part["roofline"]["operations"] == summary["hardware_flops"] == 2 * 12 * 4 * 20
    assert part["roofline"]["bytes"] == summary["hbm_read_bytes"] + summary["hbm_write_bytes"]
    controller, instructions, stalls = part["groups"]
    timeline = Timeline(result.profile / "timeline.json")
    assert bars_of(controller) == slices_of(timeline, "controller")
    assert bars_of(instructions) == slices_of(timeline, "engines") and len(bars_of(instructions)) == 14
    assert bars_of(stalls) == slices_of(timeline, "stalls")
    assert {part["window"] for part in part["groups"]} == {0}
    assert any(text.startswith("pages.py:") and "dst=stationary" in text for text in instructions["texts"])
    assert set(data["meanings"]) == {cause.name.lower() for cause in StallCause}
    assert data["verdict"] == ("model" if target == "model" else "passed")


def test_memory_is_that_of_the_timeline(made):
    result, data = made["rtl", 1]
    curves = Timeline(result.profile / "timeline.json").curves["memories on chip"]
    for curve in data["parts"][0]["memory"][:2]:
        levels = groupby(zip(curve["x"], curve["y"], strict=True), key=itemgetter(1))
        (drawn,) = (points for name, points in curves.items() if name.startswith(curve["name"]))
        assert [next(level) for _, level in levels] == [point for point in drawn if point[0] < result.cycles]
        assert max(curve["y"]) > 0


def test_tensors_in_hbm_live_from_their_first_access_to_their_last(made):
    figures = made["rtl", 1][0].profiled
    points = hbm_occupancy(figures.run)
    loads = [ran for ran in figures.run.records if ran.record.instruction.transfers]
    store = loads.pop(max(range(len(loads)), key=lambda number: loads[number].issued))
    a, b = 12 * 4 * 2, 12 * 20 * 2
    assert points[0] == (0, a + b) and points[-1] == (figures.run.cycles, 0)
    assert dict(points)[store.issued] == 4 * 20 * 4 and dict(points)[max(ran.retired for ran in loads)] == 0


def test_golden_has_no_cycles_and_the_page_has_what_exists(made):
    result, data = made["golden", 0]
    assert result.cycles is None and data["record"]["cycles"] is None
    assert data["parts"] == [] and data["verdict"] == "model" and data["record"]["settings"]["TARGET"] == "golden"


def test_lines_are_those_of_the_kernel(made):
    result, data = made["rtl", 0]
    lines = {line["line"]: (line["cycles"], line["records"]) for line in data["parts"][0]["lines"]}
    assert lines == {str(line): (cost.cycles, cost.records) for line, cost in result.lines.items()}


def test_page_is_one_file_and_can_hold_any_text(made, tmp_path):
    page = made["golden", 0][0].report.read_text()
    assert page.count("<script") == page.count("</script>") == 3 and "@@" not in page
    assert "The MIT License" in page and "Leon Sorokin" in page
    assert not [word for word in ('src="', "http-equiv", '<link rel="stylesheet', "@import") if word in page]
    with recording_in(tmp_path):
        wrong = wrong_page(made["golden", 0][0])
    assert wrong.read_text().count("</script>") == 3 and data_of(wrong)["record"]["settings"]["TEXT"] == TEXT


def test_first_wrong_tile_of_a_tensor(made, tmp_path):
    with recording_in(tmp_path):
        data = data_of(wrong_page(made["golden", 0][0]))
    c = INPUTS["a"].T @ INPUTS["b"]
    tile = data["wrong_tile"]
    assert tile["title"] == "c[rows 0:4, columns 4:8]" and tile["places"] == [[3, 6]]
    assert tile["expected"] == [[f"{value:.1f}" for value in row] for row in c[:, 4:8]]
    assert (tile["found"][3][2], tile["found"][:3]) == ("0.0", tile["expected"][:3])
    assert data["verdict"] == "failed" and data["differences"] == ["HBM 0x0: RTL 00, golden 01"]


def test_runs_within_another_collection_are_parts_of_its_page(made, tmp_path):
    golden = made["rtl", 0][0]
    with recording_in(tmp_path), collect_parts() as parts:
        for _ in range(MOST_PARTS + 2):
            assert run(product, INPUTS, on="model", preset="tiny").report is None
        with collect_parts() as inner:
            assert inner is None
    assert parts is not None and (len(parts.parts), parts.omitted) == (MOST_PARTS, 2)
    assert not (tmp_path / "reports").exists() and golden.report is not None
    parts.note(replace(golden, job=replace(golden.job, pictures=False)), 0)
    assert parts.omitted == 2


def test_thinned_bars_cover_the_same_cycles_and_count_all():
    bars = [Slice(track, 3 * n, 3 * n + 2, "copy", {}, "load") for n in range(2000) for track in (0, 1)]
    bars.append(Slice(0, 6000, 9000, "copy", {}, "store"))
    shown, window = thin(bars, 200)
    assert len(shown) <= 200 and window & (window - 1) == 0
    joined = [int(bar.name.removesuffix(" bars").replace(",", "")) for bar in shown if bar.name != "copy"]
    assert sum(joined) + [bar.name for bar in shown].count("copy") == len(bars)
    assert Slice(0, 6000, 9000, "copy", {}, "store") in shown
    assert min(bar.begin for bar in shown) == 0 and max(bar.end for bar in shown if bar.track == 1) == 5999
    assert all(bar.end - bar.begin <= 2 * window for bar in shown if bar.kind == "load")
    assert thin(bars, 10_000) == (bars, 0)


def test_group_of_thinned_bars_says_so():
    bars = [Slice(0, 10 * n, 10 * n + 9, "", {}, "load", n) for n in range(1000)]
    group = bar_group("instructions", ["dma0"], bars, 50, lambda number: (f"copy {number}", "here"))
    assert group["of"] == 1000 and group["window"] > 9 and len(group["bars"]["begin"]) <= 50
    assert group["texts"] == ["load", "26 bars", "", "25 bars", "copy 999", "here"]
    whole = bar_group("instructions", ["dma0"], bars, 1000, lambda number: (f"copy {number}", "here"))
    assert whole["window"] == 0 and bars_of(whole) == sorted(("dma0", 10 * n, 9, f"copy {n}") for n in range(1000))
    late = bar_group("a", ["x"], [Slice(0, 0, 10, "", {}), Slice(0, 4, 6, "", {})], 9)
    assert late["bars"]["begin"] == [0, 10] and late["bars"]["end"] == [10, 10]
