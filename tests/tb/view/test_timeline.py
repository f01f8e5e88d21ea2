"""The timeline of a run: every record is there, with its cycles, and on a track slices come one after the other."""

from itertools import pairwise

import pytest

from neuroncore_rtl.spec.config import PRESETS
from neuroncore_rtl.spec.formats import BF16
from neuroncore_rtl.spec.instance import Instance
from neuroncore_rtl.spec.isa import DmaCopy, DmaTensor, LoadStationary, MultiplyMoving, Record, Storage, Update, Wait
from neuroncore_rtl.spec.isa.collective import Collective, CollectiveKind, Group
from neuroncore_rtl.tb.harness.link_view import Sample
from neuroncore_rtl.tb.harness.outcome import Ending, Event, Outcome
from neuroncore_rtl.tb.view.timeline import write_timeline
from neuroncore_rtl.tb.view.tracks import core_tracks, link_tracks
from tests.tb.view.recordings import Timeline

CONFIG = PRESETS["tiny"]

END = 900
"""Cycle in which the program ends."""

LOAD = Record(instruction=LoadStationary(format=BF16, k=4, m=4, address=0), waits=(Wait(3, 1),), updates=(Update(1),))
MULTIPLY = Record(instruction=MultiplyMoving(format=BF16, k=4, n=8, m=4, address=0, stride=2, psum=0))
HBM, SBUF = (DmaTensor(format=BF16, address=0, storage=storage, steps=(1,)) for storage in (Storage.HBM, Storage.SBUF))
COPY = Record(instruction=DmaCopy(shape=(64,), src=HBM, dst=SBUF))
ALL_REDUCE = Collective(kind=CollectiveKind.ALL_REDUCE, group=Group(1, 2, 2), rank=0, count=1024, dst=4096)
SUM = Record(instruction=ALL_REDUCE)

RECORDS = {0x100: LOAD, 0x180: MULTIPLY, 0x200: LOAD, 0x280: MULTIPLY, 0x400: COPY, 0x480: COPY, 0x500: SUM}

EVENTS = (
    Event(3, 0x400, 10, 90),
    Event(3, 0x480, 20, 100),  # taken while the one before it is copied
    Event(0, 0x100, 92, 96),
    Event(0, 0x180, 94, 120),
    Event(0, 0x200, 96, 100),  # beside the multiplication
    Event(0, 0x280, 98, 140),
    Event(3, 0x400, 200, 260),  # executed once more
    Event(3, 0x480, 300, None),  # the program ended first
)


def tracks_of(name, events, config=CONFIG):
    run = Outcome(ending=Ending.FINISHED, cycles=END, events=events)
    return core_tracks(name, run, config, RECORDS.__getitem__)


@pytest.fixture(scope="module")
def timeline(tmp_path_factory):
    """Slices by the name of their track."""
    path = write_timeline(tmp_path_factory.mktemp("timeline") / "run", [tracks_of("core", EVENTS)])
    assert path.name == "run.json"
    written = Timeline(path)
    assert written.tracks == {"core": ["tensor", "vector", "scalar", "dma0", "dma1", "tensor, loading"]}
    return {track: slices for (_, track), slices in written.slices.items()}


def spans(slices) -> list[tuple[int, int]]:
    return [(event["ts"], event["ts"] + event["dur"]) for event in slices]


def test_slices_of_a_track_do_not_overlap(timeline):
    assert sum(map(len, timeline.values())) == len(EVENTS)
    for slices in timeline.values():
        assert all(event["dur"] >= 0 for event in slices)
        assert all(end <= begin for (_, end), (begin, _) in pairwise(spans(slices)))


def test_slices_have_the_cycles_of_the_run(timeline):
    assert spans(timeline["tensor, loading"]) == [(92, 96), (96, 100)]
    assert spans(timeline["tensor"]) == [(94, 120), (120, 140)]
    assert spans(timeline["dma0"]) == [(10, 90), (90, 100), (200, 260), (300, END)]
    assert [event["args"]["issued"] for event in timeline["dma0"]] == [10, 20, 200, 300]
    assert timeline["dma0"][-1]["args"]["retired"] is None


def test_slices_say_what_they_are(timeline):
    assert [event["name"] for event in timeline["tensor"]] == ["multiply_moving"] * 2
    assert {event["name"] for event in timeline["dma0"]} == {"dma hbm to sbuf"}
    load = timeline["tensor, loading"][0]
    told = {"record": "0x100", "waits": ["semaphore 3 >= 1"], "updates": ["semaphore 1 add 1"]}
    assert load["name"] == "load_stationary" and load["args"] | told == load["args"]


def test_an_instance_has_every_core_and_the_links(tmp_path):
    """A group for each core, in order; its collectives say with whom they are; the curves of the links follow."""
    instance = Instance(chips=2, width=2, link_bytes=8, core=CONFIG)
    events = (EVENTS[:2], [Event(5, 0x500, 30, 80)], [], [Event(5, 0x500, 40, 90)])
    cores = [tracks_of(f"core {core}", own, instance.core) for core, own in enumerate(events)]
    counters = {"flits": 3, "stalled": 0, "replays": 0}
    samples = [Sample(16, [0] * 4, [counters] * 4), Sample(32, [1] * 4, [counters] * 4)]
    written = Timeline(write_timeline(tmp_path / "run", [*cores, *link_tracks(instance, samples)]))
    assert written.groups[:4] == [f"core {core}" for core in range(4)]
    assert len(written.groups) == 8 and all(name.startswith("links: ") for name in written.groups[4:])
    found = {place: len(slices) for place, slices in written.slices.items()}
    assert found == {("core 0", "dma0"): 2, ("core 1", "collective"): 1, ("core 3", "collective"): 1}
    (collective,) = written.slices["core 1", "collective"]
    assert (collective["name"], *spans([collective])) == ("all_reduce fp32 4 KiB", (30, 80))
    assert collective["args"]["group"] == "2 cores from 1 to 3, every 2" and collective["args"]["issued"] == 30
