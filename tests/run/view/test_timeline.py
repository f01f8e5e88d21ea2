"""Timelines: slices of records and collectives, and curves of links."""

from itertools import pairwise

import pytest

from neuroncore_rtl.run.harness.link_view import FIRST_WINDOW, SAMPLES, LinkSample, read_samples
from neuroncore_rtl.run.harness.outcome import Ending, Event, Outcome
from neuroncore_rtl.run.view.timeline import write_timeline
from neuroncore_rtl.run.view.tracks import core_tracks, engine_tracks, link_tracks
from neuroncore_rtl.spec.config import PRESETS
from neuroncore_rtl.spec.formats import BF16
from neuroncore_rtl.spec.instance import Instance
from neuroncore_rtl.spec.isa import DmaCopy, DmaTensor, LoadStationary, MultiplyMoving, Record, Storage, Update, Wait
from neuroncore_rtl.spec.isa.collective import Collective, CollectiveKind, CollectiveType, Group
from tests.run.view.recordings import Timeline

CONFIG = PRESETS["tiny"]
INSTANCE = Instance(chips=2, width=2, link_bytes=8, core=CONFIG)


@pytest.fixture
def write_and_read(tmp_path):
    def write(*groups) -> Timeline:
        path = write_timeline(tmp_path / "run", groups)
        assert path == tmp_path / "run.json"
        return Timeline(path)

    return write


def spans(slices) -> list[tuple[int, int]]:
    return [(event["ts"], event["ts"] + event["dur"]) for event in slices]


def args(slices, name) -> list:
    return [event["args"][name] for event in slices]


END = 900  # cycle in which the program ends

LOAD = Record(instruction=LoadStationary(format=BF16, k=4, m=4, address=0), waits=(Wait(3, 1),), updates=(Update(1),))
MULTIPLY = Record(instruction=MultiplyMoving(format=BF16, k=4, n=8, m=4, address=0, stride=2, psum=0))
HBM, SBUF = (DmaTensor(format=BF16, address=0, storage=storage, steps=(1,)) for storage in (Storage.HBM, Storage.SBUF))
COPY = Record(instruction=DmaCopy(shape=(64,), src=HBM, dst=SBUF))
ALL_REDUCE = Collective(kind=CollectiveKind.ALL_REDUCE, group=Group(1, 2, 2), rank=0, count=1024, dst=4096)
SUM = Record(instruction=ALL_REDUCE)

RECORDS = {0x100: LOAD, 0x180: MULTIPLY, 0x200: LOAD, 0x280: MULTIPLY, 0x400: COPY, 0x480: COPY, 0x500: SUM}

EVENTS = (
    Event(3, 0x400, 10, 90),
    Event(3, 0x480, 20, 100),  # accepted during the preceding copy
    Event(0, 0x100, 92, 96),
    Event(0, 0x180, 94, 120),
    Event(0, 0x200, 96, 100),  # in parallel with the multiplication
    Event(0, 0x280, 98, 140),
    Event(3, 0x400, 200, 260),  # executed again
    Event(3, 0x480, 300, None),  # not retired before the program's end
)


def tracks_of(name, events, config=CONFIG):
    return core_tracks(name, Outcome(ending=Ending.FINISHED, cycles=END, events=events), config, RECORDS.__getitem__)


def test_slices_of_a_core_have_the_cycles_of_the_run_and_say_what_they_are(write_and_read):
    timeline = write_and_read(tracks_of("core", EVENTS))
    assert timeline.tracks == {"core": ["tensor", "vector", "scalar", "dma0", "dma1", "tensor, loading"]}
    assert sum(map(len, timeline.slices.values())) == len(EVENTS)
    for slices in timeline.slices.values():
        assert all(event["dur"] >= 0 for event in slices)
        assert all(end <= begin for (_, end), (begin, _) in pairwise(spans(slices)))
    assert spans(timeline.slices["core", "tensor, loading"]) == [(92, 96), (96, 100)]
    assert spans(timeline.slices["core", "tensor"]) == [(94, 120), (120, 140)]
    dma = timeline.slices["core", "dma0"]
    assert spans(dma) == [(10, 90), (90, 100), (200, 260), (300, END)]
    assert args(dma, "issued") == [10, 20, 200, 300] and args(dma, "retired")[-1] is None
    assert [event["name"] for event in timeline.slices["core", "tensor"]] == ["multiply_moving"] * 2
    assert {event["name"] for event in timeline.slices["core", "dma0"]} == {"dma hbm to sbuf"}
    load = timeline.slices["core", "tensor, loading"][0]
    told = {"record": "0x100", "waits": ["semaphore 3 >= 1"], "updates": ["semaphore 1 add 1"]}
    assert load["name"] == "load_stationary" and load["args"] | told == load["args"]


def test_an_instance_has_every_core_and_the_links(write_and_read):
    events = (EVENTS[:2], [Event(5, 0x500, 30, 80)], [], [Event(5, 0x500, 40, 90)])
    cores = [tracks_of(f"core {core}", own, INSTANCE.core) for core, own in enumerate(events)]
    samples = [LinkSample(16, [0] * 4, [counters(3)] * 4), LinkSample(32, [1] * 4, [counters(3)] * 4)]
    timeline = write_and_read(*cores, *link_tracks(INSTANCE, samples))
    assert timeline.groups[:4] == [f"core {core}" for core in range(4)]
    assert len(timeline.groups) == 8 and all(name.startswith("links: ") for name in timeline.groups[4:])
    found = {place: len(slices) for place, slices in timeline.slices.items()}
    assert found == {("core 0", "dma0"): 2, ("core 1", "collective"): 1, ("core 3", "collective"): 1}
    (collective,) = timeline.slices["core 1", "collective"]
    assert (collective["name"], *spans([collective])) == ("all_reduce fp32 4 KiB", (30, 80))
    assert collective["args"]["group"] == "2 cores from 1 to 3, every 2" and collective["args"]["issued"] == 30


EVERY_OTHER = Group(3, -2, 2)

LISTS = {
    1: [
        Collective(kind=CollectiveKind.ALL_GATHER, group=EVERY_OTHER, rank=1, count=512, dtype=CollectiveType.BF16),
        Collective(kind=CollectiveKind.BARRIER, group=EVERY_OTHER, rank=1),
        (1 << 258) - 1,
    ],
    3: [Collective(kind=CollectiveKind.ALL_REDUCE, group=Group(3, -1, 4), rank=0, count=3 << 18)],
}
TAKEN = [[], [Event(0, 0, 5, 90), Event(0, 1, 7, 120), Event(0, 2, 130, None)], [], [Event(0, 0, 6, 140)]]


def counters(flits, replays=0, stalled=0):
    return {"flits": flits, "replays": replays, "crc_errors": 0, "discarded": 0, "idle": 0, "stalled": stalled}


SAMPLES_OF_LINKS = [
    LinkSample(100, [3, 0, 0, 0], [counters(50), counters(0), counters(100, 2, 10), counters(1)]),
    LinkSample(200, [30, 0, 0, 0], [counters(50), counters(0), counters(150, 2, 10), counters(2)]),
    LinkSample(250, [0, 0, 0, 0], [counters(80), counters(0), counters(150, 3, 60), counters(2)]),
]


def test_slices_of_engines_follow_each_other_and_say_what_they_are(write_and_read):
    timeline = write_and_read(engine_tracks(LISTS, TAKEN, 250))
    assert set(timeline.slices) == {("collective engines", f"core {core}") for core in (1, 3)}
    first, third = timeline.slices.values()
    assert spans(first) == [(5, 90), (90, 120), (130, 250)]
    assert args(first, "taken") == [5, 7, 130] and args(first, "retired") == [90, 120, None]
    names = [one["name"] for one in (*first, *third)]
    assert names == ["all_gather bf16 2 KiB", "barrier", "illegal", "all_reduce fp32 3 MiB"]
    gather, barrier, reduce = (one["args"] for one in (*first[:2], *third))
    told = {"type": "bf16", "bytes": 2048, "blocks": 2, "rank": 1, "group": "2 cores from 3 to 1, every 2"}
    assert gather | told == gather and "op" not in gather and "type" not in barrier
    assert reduce["group"] == "4 cores from 3 to 0" and reduce["op"] == "sum"


def test_curves_of_links_are_those_of_the_windows(write_and_read):
    timeline = write_and_read(engine_tracks(LISTS, TAKEN, 250), *link_tracks(INSTANCE, SAMPLES_OF_LINKS))
    first = {group.removeprefix("links: "): curves["chip 0 up -> chip 1"] for group, curves in timeline.curves.items()}
    third = {group.removeprefix("links: "): curves["chip 1 up -> chip 0"] for group, curves in timeline.curves.items()}
    assert first["utilisation, percent"] == [(0, 50), (100, 0), (200, 60), (250, 0)]
    assert first["credits used"] == [(0, 0), (100, 3), (200, 30), (250, 0)]
    assert third["cycles stalled for want of a credit, percent"] == [(0, 10), (100, 0), (200, 100), (250, 0)]
    assert third["retries"] == [(0, 2), (100, 0), (200, 1), (250, 0)]
    assert timeline.curves["links: utilisation, percent"]["chip 0 down -> chip 1"] == [(0, 0)]


def samples_until(end: int) -> str:
    """Return the samples of a run by the harness; their distance doubles at sample 200 and each 100th after it."""
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
    samples = read_samples(samples_until(end))
    cycles = [sample.cycle for sample in samples]
    distance = cycles[0] if len(cycles) > 1 else FIRST_WINDOW
    assert cycles == [*range(distance, end, distance), end]
    assert len(cycles) <= SAMPLES
    assert end < SAMPLES * FIRST_WINDOW or len(cycles) >= SAMPLES // 2
    assert all(sample.credits_used == [1, 2] and sample.counters[1]["flits"] == sample.cycle for sample in samples)
