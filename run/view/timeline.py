"""Timelines for https://ui.perfetto.dev: groups of tracks, each with slices or with a curve.

The format is the JSON of Chrome's trace viewer ("Trace Event Format"). A microsecond there is a cycle here.
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
"""The colour of each kind of slice, by its name in Chrome's trace viewer. Perfetto's user interface takes the colour
from a slice's name without its digits."""


@dataclass(frozen=True)
class Slice:
    """Something that lasted on a track of slices.

    Arguments:
        track: the track's number.
        begin, end: cycles.
        name: on the slice.
        args: what is told of it where it is selected.
        kind: of its colour, one of `KINDS`; "" for any colour.
        number: by which arrows of its group find it; None if there are none.
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

    On a track slices come one after the other: one that begins before the one before it has ended counts from there.

    Arguments:
        name: of the group.
        tracks: names of the tracks of slices, by number.
        slices: those of a track in the order of their beginnings.
        curves: by the track's name, (cycle, value from there on), in order; repetitions are left out.
        arrows: numbers of two slices, from the end of the first one to the beginning of the second.
    """

    name: str
    tracks: Sequence[str] = ()
    slices: Iterable[Slice] = ()
    curves: Mapping[str, Sequence[tuple[int, float]]] = field(default_factory=dict)
    arrows: Iterable[tuple[int, int]] = ()


def write_timeline(path: Path, groups: Iterable[TrackGroup]) -> Path:
    """Write the timeline of any device, its groups from top to bottom; return its path.

    Arguments:
        path: the file, which gets a suffix of .json if it has none.
        groups: of tracks.
    """
    path = path if path.suffix else path.with_suffix(".json")
    path.parent.mkdir(parents=True, exist_ok=True)
    events = [event for process, group in enumerate(groups, 1) for event in _events(process, group)]
    path.write_text(json.dumps({"displayTimeUnit": "ns", "traceEvents": events}))
    return path


def _events(process: int, group: TrackGroup) -> Iterator[Mapping[str, object]]:
    """Yield the events of a group; a process stands for it, a thread for a track, of which 0 would be the idle one."""
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
        # What does not lie within its slice is not drawn.
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
