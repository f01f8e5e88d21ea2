"""The timeline of collectives: a slice for each instruction, and curves of the links that add up to their counters."""

import pytest

from neuroncore_rtl.spec.instance import Instance
from neuroncore_rtl.spec.isa.collective import Collective, CollectiveKind, CollectiveType, Group
from neuroncore_rtl.tb.harness.link_view import FIRST_WINDOW, SAMPLES, Sample, read_samples
from neuroncore_rtl.tb.harness.outcome import Event
from neuroncore_rtl.tb.view.timeline import write_timeline
from neuroncore_rtl.tb.view.tracks import engine_tracks, link_tracks
from tests.tb.view.recordings import Timeline

INSTANCE = Instance(chips=2, width=2, link_bytes=8)

EVERY_OTHER = Group(3, -2, 2)

LISTS = {
    1: [
        Collective(kind=CollectiveKind.ALL_GATHER, group=EVERY_OTHER, rank=1, count=512, dtype=CollectiveType.BF16),
        Collective(kind=CollectiveKind.BARRIER, group=EVERY_OTHER, rank=1),
        (1 << 258) - 1,
    ],
    3: [Collective(kind=CollectiveKind.ALL_REDUCE, group=Group(3, -1, 4), rank=0, count=3 << 18)],
}
EVENTS = [[], [Event(0, 0, 5, 90), Event(0, 1, 7, 120), Event(0, 2, 130, None)], [], [Event(0, 0, 6, 140)]]


def counters(flits, replays=0, stalled=0):
    return {"flits": flits, "replays": replays, "crc_errors": 0, "discarded": 0, "idle": 0, "stalled": stalled}


SAMPLES_OF_LINKS = [
    Sample(100, [3, 0, 0, 0], [counters(50), counters(0), counters(100, 2, 10), counters(1)]),
    Sample(200, [30, 0, 0, 0], [counters(50), counters(0), counters(150, 2, 10), counters(2)]),
    Sample(250, [0, 0, 0, 0], [counters(80), counters(0), counters(150, 3, 60), counters(2)]),
]

UTILISATION = "links: utilisation, percent"


@pytest.fixture(scope="module")
def timeline(tmp_path_factory):
    directory = tmp_path_factory.mktemp("timeline")
    groups = [engine_tracks(LISTS, EVENTS, 250), *link_tracks(INSTANCE, SAMPLES_OF_LINKS)]
    path = write_timeline(directory / "run", groups)
    assert path == directory / "run.json"
    return Timeline(path)


@pytest.fixture
def engines(timeline):
    """The slices of cores 1 and 3."""
    assert set(timeline.slices) == {("collective engines", f"core {core}") for core in (1, 3)}
    return timeline.slices.values()


def test_slices_follow_each_other_on_the_core_s_track(engines):
    one, _ = engines
    assert [(part["ts"], part["dur"]) for part in one] == [(5, 85), (90, 30), (130, 120)]
    assert [(part["args"]["taken"], part["args"]["retired"]) for part in one] == [(5, 90), (7, 120), (130, None)]


def test_slices_say_what_they_are(engines):
    (gather, barrier, illegal), (reduce,) = engines
    names = [one["name"] for one in (gather, barrier, illegal, reduce)]
    assert names == ["all_gather bf16 2 KiB", "barrier", "illegal", "all_reduce fp32 3 MiB"]
    assert gather["args"] | {"type": "bf16", "bytes": 2048, "blocks": 2, "rank": 1} == gather["args"]
    assert gather["args"]["group"] == "2 cores from 3 to 1, every 2"
    assert reduce["args"]["group"] == "4 cores from 3 to 0"
    assert reduce["args"]["op"] == "sum" and "op" not in gather["args"] and "type" not in barrier["args"]


@pytest.mark.parametrize(
    "group, link, points",
    [
        (UTILISATION, "chip 0 up -> chip 1", [(0, 50), (100, 0), (200, 60), (250, 0)]),
        (UTILISATION, "chip 0 down -> chip 1", [(0, 0)]),
        (
            "links: cycles stalled for want of a credit, percent",
            "chip 1 up -> chip 0",
            [(0, 10), (100, 0), (200, 100), (250, 0)],
        ),
        ("links: retries", "chip 1 up -> chip 0", [(0, 2), (100, 0), (200, 1), (250, 0)]),
        ("links: credits used", "chip 0 up -> chip 1", [(0, 0), (100, 3), (200, 30), (250, 0)]),
    ],
)
def test_curves_are_those_of_the_windows(timeline, group, link, points):
    assert timeline.curves[group][link] == points


def test_the_links_have_a_timeline_of_their_own(tmp_path):
    def written(samples):
        return Timeline(write_timeline(tmp_path / "links.json", link_tracks(INSTANCE, samples, credits=False)))

    links = written(SAMPLES_OF_LINKS)
    assert not links.slices and "links: credits used" not in links.groups
    assert len(links.curves[UTILISATION]) == 4
    empty = written([])
    assert not empty.slices and not empty.curves


def written(end: int) -> str:
    """Return what the harness writes in a run of so many cycles: it doubles its window with every 200th sample."""
    lines, window, due, taken = [], FIRST_WINDOW, FIRST_WINDOW, 0
    while due < end:
        lines.append(due)
        taken += 1
        if taken == SAMPLES:
            window, taken = 2 * window, SAMPLES // 2
        due += window
    return "".join(f"{cycle} {wire} {wire} 1 {cycle:x}\n" for cycle in [*lines, end] for wire in (1, 0))


@pytest.mark.parametrize("end", [1, 15, 16, 17, 3199, 3200, 3201, 3232, 6399, 6400, 6401, 100_000, 1_234_567])
def test_a_run_of_any_length_has_samples_at_even_distances(end):
    samples = read_samples(written(end))
    cycles = [sample.cycle for sample in samples]
    distance = cycles[0] if len(cycles) > 1 else FIRST_WINDOW
    assert cycles == [*range(distance, end, distance), end]
    assert len(cycles) <= SAMPLES
    assert end < SAMPLES * FIRST_WINDOW or len(cycles) >= SAMPLES // 2
    assert all(sample.credits_used == [1, 2] and sample.counters[1]["flits"] == sample.cycle for sample in samples)
