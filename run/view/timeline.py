"""Timelines for https://ui.perfetto.dev: groups of tracks, each with slices or with a curve.

The format is JSON in Chrome's Trace Event Format; its microsecond represents a cycle.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

__all__ = ["KINDS", "Slice", "TrackGroup", "without_overlap", "write_timeline"]

KINDS = {
    "load": "thread_state_iowait", "store": "thread_state_runnable", "copy": "thread_state_sleeping",
    "weights": "rail_animation", "multiply": "good", "vector": "rail_load", "scalar": "rail_response",
    "collective": "olive", "control": "grey", "stall": "bad", "rest": "white",
}  # fmt: skip
"""Colours of slices in Chrome's trace viewer by kind; Perfetto derives a slice's from its name without digits."""


class Slice(NamedTuple):
    """Slice of a track from cycle `begin` to before `end`.

    Arguments:
        args: details that are shown when the slice is selected.
        kind: key of `KINDS`, which determines the colour; "": the viewer selects a colour.
        number: identifier of the slice for the arrows of its group; None: the slice has no arrows.
    """

    track: int
    begin: int
    end: int
    name: str
    args: Mapping[str, object]
    kind: str = ""
    number: int | None = None


@dataclass(frozen=True, kw_only=True)
class TrackGroup:
    """Tracks that are shown together.

    Arguments:
        tracks: names of the tracks that contain slices, in the order of `Slice.track`.
        slices: the slices, in order per track, drawn as by `without_overlap`.
        curves: points (cycle, value from this cycle on) by track name, in order; repeated values are removed.
        arrows: pairs of `Slice.number`; an arrow leads from the end of the first slice to the beginning of the second.
    """

    name: str
    tracks: Sequence[str] = ()
    slices: Iterable[Slice] = ()
    curves: Mapping[str, Sequence[tuple[int, float]]] = field(default_factory=dict)
    arrows: Iterable[tuple[int, int]] = ()


def write_timeline(path: Path, groups: Iterable[TrackGroup]) -> Path:
    """Write a timeline with groups from top to bottom; return its path, with the default suffix .json."""
    path = path if path.suffix else path.with_suffix(".json")
    path.parent.mkdir(parents=True, exist_ok=True)
    events = [event for process, group in enumerate(groups, 1) for event in _events(process, group)]
    path.write_text(json.dumps({"displayTimeUnit": "ns", "traceEvents": events}))
    return path


def without_overlap(slices: Iterable[Slice]) -> Iterator[Slice]:
    """Yield slices; one that begins before the end of the previous slice of its track begins there instead."""
    free: dict[int, int] = {}
    for one in slices:
        begin = max(one.begin, free.get(one.track, 0))
        free[one.track] = end = max(begin, one.end)
        yield one._replace(begin=begin, end=end)


def _events(process: int, group: TrackGroup) -> Iterator[Mapping[str, object]]:
    """Yield the events of a group as a process with a thread per track; threads start at 1, since 0 means idle."""
    yield {"ph": "M", "pid": process, "name": "process_name", "args": {"name": group.name}}
    yield {"ph": "M", "pid": process, "name": "process_sort_index", "args": {"sort_index": process}}
    for thread, title in enumerate(group.tracks, 1):
        yield {"ph": "M", "pid": process, "tid": thread, "name": "thread_name", "args": {"name": title}}
    shown: dict[int | None, Slice] = {}
    for one in without_overlap(group.slices):
        at = {"ph": "X", "pid": process, "tid": one.track + 1, "ts": one.begin, "dur": one.end - one.begin}
        colour = {"cat": one.kind, "cname": KINDS[one.kind]} if one.kind else {}
        shown[one.number] = one
        yield at | colour | {"name": one.name, "args": dict(one.args)}
    for number, (tail, head) in enumerate((shown[first], shown[second]) for first, second in group.arrows):
        arrow = {"pid": process, "id": process << 32 | number, "name": "semaphore", "cat": "semaphore"}
        # An arrow's ends are drawn only within their slices.
        yield arrow | {"ph": "s", "tid": tail.track + 1, "ts": max(tail.begin, tail.end - 1)}
        yield arrow | {"ph": "f", "bp": "e", "tid": head.track + 1, "ts": head.begin}
    for track, points in group.curves.items():
        last = None
        for cycle, value in points:
            if value != last:
                yield {"ph": "C", "pid": process, "ts": cycle, "name": track, "args": {"value": value}}
            last = value
