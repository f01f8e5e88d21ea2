"""Timelines for https://ui.perfetto.dev: groups of tracks, each with slices or with a curve.

The format is JSON in Chrome's Trace Event Format; its microsecond represents a cycle.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["KINDS", "Slice", "TrackGroup", "write_timeline"]


KINDS = {
    "load": "thread_state_iowait", "store": "thread_state_runnable", "copy": "thread_state_sleeping",
    "weights": "rail_animation", "multiply": "good", "vector": "rail_load", "scalar": "rail_response",
    "collective": "olive", "control": "grey", "stall": "bad", "rest": "white",
}  # fmt: skip
"""Colour of each kind of slice, by its name in Chrome's trace viewer. Perfetto derives a slice's colour from its name
without digits.
"""


@dataclass(frozen=True)
class Slice:
    """Slice of a track from cycle `begin` to before `end`.

    Arguments:
        track: index of the track in its group.
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

    Slices of a track cannot overlap: a slice that begins before the end of the previous slice is drawn from there on.

    Arguments:
        tracks: names of the tracks that contain slices, in the order of `Slice.track`.
        slices: the slices, in order per track.
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


def _events(process: int, group: TrackGroup) -> Iterator[Mapping[str, object]]:
    """Yield the events of a group as a process with a thread per track; threads start at 1, since 0 means idle."""
    yield {"ph": "M", "pid": process, "name": "process_name", "args": {"name": group.name}}
    yield {"ph": "M", "pid": process, "name": "process_sort_index", "args": {"sort_index": process}}
    for thread, title in enumerate(group.tracks, 1):
        yield {"ph": "M", "pid": process, "tid": thread, "name": "thread_name", "args": {"name": title}}
    free: dict[int, int] = {}
    shown: dict[int, tuple[int, int, int]] = {}
    for one in group.slices:
        begin = max(one.begin, free.get(one.track, 0))
        free[one.track] = end = max(begin, one.end)
        at = {"ph": "X", "pid": process, "tid": one.track + 1, "ts": begin, "dur": end - begin}
        colour = {"cat": one.kind, "cname": KINDS[one.kind]} if one.kind else {}
        if one.number is not None:
            shown[one.number] = one.track + 1, begin, end
        yield at | colour | {"name": one.name, "args": dict(one.args)}
    for number, (first, second) in enumerate(group.arrows):
        # An arrow's ends are drawn only within their slices.
        (tail, begin, end), (head, there, _) = shown[first], shown[second]
        arrow = {"pid": process, "id": process << 32 | number, "name": "semaphore", "cat": "semaphore"}
        yield arrow | {"ph": "s", "tid": tail, "ts": max(begin, end - 1)}
        yield arrow | {"ph": "f", "bp": "e", "tid": head, "ts": there}
    for track, points in group.curves.items():
        last = None
        for cycle, value in points:
            if value != last:
                yield {"ph": "C", "pid": process, "ts": cycle, "name": track, "args": {"value": value}}
            last = value
