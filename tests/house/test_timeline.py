"""The timeline of a run: every record is there, with its cycles, and on a track slices come one after the other."""

import json
from itertools import pairwise

import pytest

from spec.config import PRESETS
from spec.formats import BF16
from spec.isa import DmaCopy, DmaTensor, LoadStationary, MultiplyMoving, Record, Storage, Update, Wait
from tb.core import Event, Run
from tb.timeline import write_timeline

CONFIG = PRESETS["tiny"]

END = 900
"""Cycle in which the program ends."""

LOAD = Record(instruction=LoadStationary(format=BF16, k=4, m=4, address=0), waits=(Wait(3, 1),), updates=(Update(1),))
MULTIPLY = Record(instruction=MultiplyMoving(format=BF16, k=4, n=8, m=4, address=0, stride=2, psum=0))
COPY = Record(
    instruction=DmaCopy(
        shape=(64,),
        src=DmaTensor(format=BF16, address=0, storage=Storage.HBM, steps=(1,)),
        dst=DmaTensor(format=BF16, address=0, storage=Storage.SBUF, steps=(1,)),
    )
)

RECORDS = {0x100: LOAD, 0x180: MULTIPLY, 0x200: LOAD, 0x280: MULTIPLY, 0x400: COPY, 0x480: COPY}

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


@pytest.fixture(scope="module")
def timeline(tmp_path_factory):
    """Slices by the name of their track."""
    run = Run(cycles=END, exit_code=0, gave_up=False, error=None, counters={}, events=EVENTS, console="")
    path = write_timeline(tmp_path_factory.mktemp("timeline") / "run", run, CONFIG, RECORDS.__getitem__)
    assert path.name == "run.json"
    events = json.loads(path.read_text())["traceEvents"]
    names = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    assert list(names.values()) == ["tensor", "vector", "scalar", "dma0", "dma1", "tensor, loading"]
    assert 0 not in names
    tracks = {name: [] for name in names.values()}
    for event in events:
        if event["ph"] == "X":
            tracks[names[event["tid"]]].append(event)
    return tracks


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
    assert load["name"] == "load_stationary"
    assert load["args"]["record"] == "0x100"
    assert load["args"]["waits"] == ["semaphore 3 >= 1"]
    assert load["args"]["updates"] == ["semaphore 1 add 1"]
