"""What is seen of a run on an instance: timeline, picture and waveform are there, and say what the report says."""

import json
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from neuroncore_rtl.spec.isa.collective import CollectiveKind
from neuroncore_rtl.tb.benches import router
from neuroncore_rtl.tb.benches.collective import ALLREDUCE
from neuroncore_rtl.tb.view.collective_waves import Does, Receiving, Sending
from neuroncore_rtl.tb.view.waves import signals
from tests.tb.view.test_waves import Waveform

BYTES = 1200

WORDS = ["CHIPS=2", "LINK_BYTES=8", "LINK_LATENCY=1", "WAVES=1", "DEPTH=2", "ERRORS=0.01", "SEED=3"]

SIMULATORS = ["icarus", pytest.param("verilator", marks=pytest.mark.slow)]


def run(bench, module: str, words: list[str], directory: Path):
    """Run a TEST with all that it records under a directory; return its report."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(f"{module}.SIM_BUILD", directory)
        patch.setattr(f"{module}.waveform", lambda label: directory / f"{label}.vcd")
        report = bench.run(bench.settings([*WORDS, *words]))
    assert report.problems == []
    return report


@pytest.fixture(scope="module", params=SIMULATORS)
def seen(request, tmp_path_factory):
    """The report of an all-reduce, and its waveform."""
    directory = tmp_path_factory.mktemp("seeing")
    report = run(
        ALLREDUCE,
        "neuroncore_rtl.tb.benches.execution",
        [f"BYTES={BYTES}", f"SIM={request.param}"],
        directory,
    )
    return report, Waveform(directory / "allreduce.vcd", "collective")


@pytest.fixture(scope="module", params=SIMULATORS)
def traffic(request, tmp_path_factory):
    """The report of traffic, and its waveform."""
    directory = tmp_path_factory.mktemp("traffic")
    report = run(
        router.BENCH, "neuroncore_rtl.tb.benches.router", ["FLITS=400", "STALL=40", f"SIM={request.param}"], directory
    )
    return report, Waveform(directory / "router.vcd", "traffic")


def groups(report) -> tuple[dict[str, list], dict[str, dict[str, list]]]:
    """Return the slices of a timeline by track, and its points by group and track."""
    events = json.loads(Path(report.extra["timeline"]).read_text())["traceEvents"]
    names = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
    threads = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    slices, points = defaultdict(list), defaultdict(lambda: defaultdict(list))
    for event in events:
        if event["ph"] == "X":
            slices[threads[event["tid"]]].append(event)
        if event["ph"] == "C":
            points[names[event["pid"]]][event["name"]].append((event["ts"], event["args"]["value"]))
    return slices, points


def area(points) -> float:
    """Return the sum of a curve's values over all cycles."""
    return sum(value * (end - begin) for (begin, value), (end, _) in pairwise(points))


def check_curves(report) -> None:
    """Hold the timeline's curves against the report's table."""
    _, points = groups(report)
    busy, stalled = (
        points[f"links: {what}, percent"] for what in ("utilisation", "cycles stalled for want of a credit")
    )
    for name, row in report.details["links"].items():
        assert area(busy[name]) / 100 == pytest.approx(row["flits"])
        assert area(stalled[name]) / 100 == pytest.approx(row["stalled_cycles"])
        assert max(value for _, value in busy[name]) <= 100
        assert row["utilisation"] > 0
    assert points["links: retries"]


def check_waveform(report, wave) -> None:
    """Hold the waveform against the report's table."""
    running = wave.high("rst").count(False)
    for name, row in report.details["links"].items():
        view = "link_" + name.partition(" ->")[0].replace(" ", "_")
        assert wave.last(f"{view}.flits") == row["flits"]
        assert wave.last(f"{view}.replays") == row["retries"] == sum(wave.high(f"{view}.goes_back"))
        assert wave.last(f"{view}.stalled") == row["stalled_cycles"] == sum(wave.high(f"{view}.stalls"))
        valid = sum(wave.high(f"{view}.valid"))
        assert valid == pytest.approx(running - wave.last(f"{view}.idle"), abs=2) and valid >= row["flits"]
        assert not any(wave.high(f"{view}.dead"))
        assert any(wave.high(f"{view}.disturbed"))


def check_save_file(report, top: str) -> list[str]:
    """Return the groups of the save file, whose signals are all in the waveform."""
    save = Path(report.extra["waveform"])
    lines = save.read_text().splitlines()
    known = set(signals(save.with_suffix(".vcd")).values())
    shown = [line.rpartition(" ")[2] for line in lines if line.startswith("+{")]
    assert len(shown) > 60 and set(shown) <= known
    assert all(name.startswith(f"{top}.") for name in shown)
    return [line.removeprefix("-") for line in lines if line.startswith("-")][::2]


def test_the_timeline_says_what_the_report_says(seen):
    report, _ = seen
    slices, points = groups(report)
    assert set(slices) == {f"core {core}" for core in range(4)}
    (first,) = slices["core 0"]
    assert first["name"] == "all_reduce fp32 1,200 bytes" and first["args"]["group"] == "4 cores from 0 to 3"
    begin = min(one["ts"] for listed in slices.values() for one in listed)
    end = max(one["ts"] + one["dur"] for listed in slices.values() for one in listed)
    assert end - begin == report.cycles
    check_curves(report)
    used = points["links: credits used"]
    assert len(used) == 4 and max(value for curve in used.values() for _, value in curve) > 0
    assert sum(row["retries"] for row in report.details["links"].values()) == report.extra["retries"] > 0


def test_the_waveform_says_what_the_report_says(seen):
    report, wave = seen
    check_waveform(report, wave)
    for core in range(4):
        at = f"engine_core_{core}"
        states = {int(value, 2) for _, value in wave[f"{at}.does"].tv if "x" not in value}
        assert states == {Does.ALL_REDUCE, Does.NOTHING}
        for channel in (0, 1):
            sending = [int(value, 2) for _, value in wave[f"{at}.sending{channel}"].tv if "x" not in value]
            receiving = [int(value, 2) for _, value in wave[f"{at}.receiving{channel}"].tv if "x" not in value]
            assert {Sending.NOTHING, Sending.SENDS} <= set(sending) <= set(Sending)
            assert {Receiving.RECEIVES, Receiving.WAIT_NET} <= set(receiving) <= set(Receiving)
        assert wave.largest(f"{at}.rank") == core and wave.largest(f"{at}.count") == BYTES // 4
        assert wave.last(f"{at}.count") == 0
    for channel in (0, 1):
        sent, received = (
            sum(wave.last(f"engine_core_{core}.{way}{channel}") for core in range(4)) for way in ("sent", "received")
        )
        assert sent == received > 0
    credits = [int(value, 2) for _, value in wave["link_chip_0_up.credits0"].tv if "x" not in value]
    assert credits[-1] == max(credits) == 15 > min(credits)


def test_the_save_file_has_a_group_for_each_link_and_engine(seen):
    found = check_save_file(seen[0], "collective")
    assert {f"link chip {chip} {way}" for chip in (0, 1) for way in ("up", "down")} < set(found)
    assert {f"engine of core {core}" for core in range(4)} < set(found)


def test_traffic_says_what_the_report_says(traffic):
    report, wave = traffic
    slices, _ = groups(report)
    assert not slices
    check_curves(report)
    check_waveform(report, wave)
    assert "link chip 1 down" in check_save_file(report, "traffic")


def test_the_picture_is_there(seen, traffic):
    from matplotlib import image

    for report, _ in (seen, traffic):
        pixels = image.imread(report.extra["picture"])
        assert min(pixels.shape[:2]) > 400 and np.ptp(pixels) > 0.8


def test_the_printed_report_is_short(seen):
    report, _ = seen
    assert "links" not in report.extra and len(report.details["links"]) == 4
    record = report.as_json()
    assert record["links"]["chip 1 up -> chip 0"]["flits"] > 0
    assert report.extra["link_flits"] == sum(row["flits"] for row in record["links"].values())
    assert CollectiveKind.ALL_REDUCE.name.lower() in json.dumps(groups(report)[0])
