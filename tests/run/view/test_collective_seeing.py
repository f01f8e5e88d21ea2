"""Views of a run on an instance."""

from collections import namedtuple
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from neuroncore_rtl.run.report import recording_in
from neuroncore_rtl.run.view.instance_waves import Does, Receiving, Sending
from tests.run.view.recordings import SaveFile, Timeline, Waveform
from tests.tb.reports import passed

BYTES = 240
WORDS = "CHIPS=2 LINK_BYTES=8 LINK_LATENCY=1 WAVES=1 DEPTH=2 ERRORS=0.01 SEED=3"

TESTS = {"allreduce": ("collective", f"BYTES={BYTES}"), "router": ("traffic", "FLITS=400 STALL=40")}
"""By TEST, its harness and its variables."""

Seen = namedtuple("Seen", "report timeline waveform save")


@pytest.fixture(scope="module")
def run_once(tmp_path_factory):
    @cache
    def run(test: str, sim: str) -> Seen:
        top, words = TESTS[test]
        with recording_in(tmp_path_factory.mktemp(test)):
            report = passed(test, f"{WORDS} {words} SIM={sim}")
        save = Path(report.rows["waveform"])
        timeline = Timeline(Path(report.rows["timeline"]))
        return Seen(report, timeline, Waveform(save.with_suffix(".vcd"), top), SaveFile(save))

    return run


on_each_simulator = pytest.mark.parametrize("sim", ["icarus", pytest.param("verilator", marks=pytest.mark.slow)])
of_each_test = pytest.mark.parametrize("test", [pytest.param("allreduce", marks=pytest.mark.slow), "router"])


def area(points) -> float:
    return sum(value * (end - begin) for (begin, value), (end, _) in pairwise(points))


@on_each_simulator
@of_each_test
def test_timelines_waveforms_save_files_and_pictures_agree_with_the_report(run_once, test, sim):
    report, timeline, wave, save = run_once(test, sim)
    busy = timeline.curves["links: utilisation, percent"]
    stalled = timeline.curves["links: cycles stalled for want of a credit, percent"]
    running = wave.high("rst").count(False)
    for row in report.details["links"]:
        name = row["link"]
        assert area(busy[name]) / 100 == pytest.approx(row["flits"])
        assert area(stalled[name]) / 100 == pytest.approx(row["stalled_cycles"])
        assert max(value for _, value in busy[name]) <= 100
        assert row["utilisation"] > 0
        view = "link_" + row["link"].partition(" ->")[0].replace(" ", "_")
        assert wave.last(f"{view}.flits") == row["flits"]
        assert wave.last(f"{view}.replays") == row["retries"] == sum(wave.high(f"{view}.goes_back"))
        assert wave.last(f"{view}.stalled") == row["stalled_cycles"] == sum(wave.high(f"{view}.stalls"))
        valid = sum(wave.high(f"{view}.valid"))
        assert valid == pytest.approx(running - wave.last(f"{view}.idle"), abs=2) and valid >= row["flits"]
        assert not any(wave.high(f"{view}.dead"))
        assert any(wave.high(f"{view}.disturbed"))
    assert timeline.curves["links: retries"]
    assert bool(timeline.slices) == (test == "allreduce")
    assert len(save.shown) > 60 and set(save.shown) <= set(wave.names.values())
    assert all(name.startswith(f"{wave.top}.") for name in save.shown)
    groups = {f"link chip {chip} {way}" for chip in (0, 1) for way in ("up", "down")}
    if test == "allreduce":
        groups |= {f"engine of core {core}" for core in range(4)}
    assert groups < set(save.groups)
    from matplotlib import image

    pixels = image.imread(report.rows["picture"])
    assert min(pixels.shape[:2]) > 400 and np.ptp(pixels) > 0.8


@on_each_simulator
def test_the_timeline_says_what_the_report_says_and_the_printed_report_is_short(run_once, sim):
    report, timeline, *_ = run_once("allreduce", sim)
    assert [track for _, track in timeline.slices] == [f"core {core}" for core in range(4)]
    slices = [one for listed in timeline.slices.values() for one in listed]
    assert len(slices) == 4
    assert slices[0]["name"] == f"all_reduce fp32 {BYTES} bytes"
    assert slices[0]["args"]["group"] == "4 cores from 0 to 3"
    assert max(one["ts"] + one["dur"] for one in slices) - min(one["ts"] for one in slices) == report.cycles
    used = timeline.curves["links: credits used"]
    assert len(used) == 4 and max(value for curve in used.values() for _, value in curve) > 0
    assert sum(row["retries"] for row in report.details["links"]) == report.rows["retries"] > 0
    assert "links" not in report.rows and len(report.details["links"]) == 4
    record = report.as_json()
    assert {row["link"]: row for row in record["links"]}["chip 1 up -> chip 0"]["flits"] > 0
    assert report.rows["link_flits"] == sum(row["flits"] for row in record["links"])


@on_each_simulator
def test_waveforms_of_engines_say_what_the_report_says(run_once, sim):
    wave = run_once("allreduce", sim).waveform
    for core in range(4):
        at = f"engine_core_{core}"
        assert set(wave.values(f"{at}.does")) == {Does.ALL_REDUCE, Does.NOTHING}
        for channel in (0, 1):
            sending, receiving = (set(wave.values(f"{at}.{end}{channel}")) for end in ("sending", "receiving"))
            assert {Sending.NOTHING, Sending.SENDS} <= sending <= set(Sending)
            assert {Receiving.RECEIVES, Receiving.WAIT_NET} <= receiving <= set(Receiving)
        assert max(wave.values(f"{at}.rank")) == core and max(wave.values(f"{at}.count")) == BYTES // 4
        assert wave.last(f"{at}.count") == 0
    for end in (0, 1):
        sent, received = (
            sum(wave.last(f"engine_core_{n}.{way}{end}") for n in range(4)) for way in ("sent", "received")
        )
        assert sent == received > 0
    credits = wave.values("link_chip_0_up.credits0")
    assert credits[-1] == max(credits) == 15 > min(credits)
