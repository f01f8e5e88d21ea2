"""Timelines for https://ui.perfetto.dev: groups of tracks, each with slices or with a curve.

The format is the JSON of Chrome's trace viewer ("Trace Event Format"). A microsecond there is a cycle here.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["Slice", "TrackGroup", "write_timeline"]


@dataclass(frozen=True)
class Slice:
    """Something that lasted on a track of slices.

    Arguments:
        track: the track's number.
        begin, end: cycles.
        name: on the slice.
        args: what is told of it where it is selected.
    """

    track: int
    begin: int
    end: int
    name: str
    args: Mapping[str, object]


@dataclass(frozen=True, kw_only=True)
class TrackGroup:
    """Tracks that are shown together.

    On a track slices come one after the other: one that begins before the one before it has ended counts from there.

    Arguments:
        name: of the group.
        tracks: names of the tracks of slices, by number.
        slices: those of a track in the order of their beginnings.
        curves: by the track's name, (cycle, value from there on), in order; repetitions are left out.
    """

    name: str
    tracks: Sequence[str] = ()
    slices: Iterable[Slice] = ()
    curves: Mapping[str, Sequence[tuple[int, float]]] = field(default_factory=dict)


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
    for one in group.slices:
        begin = max(one.begin, free.get(one.track, 0))
        free[one.track] = max(begin, one.end)
        at = {"ph": "X", "pid": process, "tid": one.track + 1, "ts": begin, "dur": max(one.end - begin, 0)}
        yield at | {"name": one.name, "args": dict(one.args)}
    for track, points in group.curves.items():
        shown = None
        for cycle, value in points:
            if value != shown:
                yield {"ph": "C", "pid": process, "ts": cycle, "name": track, "args": {"value": value}}
            shown = value
