"""Timelines for https://ui.perfetto.dev: tracks with slices, and tracks with a curve.

The format is the JSON of Chrome's trace viewer ("Trace Event Format"), which Perfetto opens. A microsecond there is a
cycle here.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Slice", "counter_track", "slice_tracks", "write_trace"]


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


def write_trace(path: Path, events: Iterable[Mapping[str, object]]) -> Path:
    """Write a timeline; return its path, which gets a suffix of .json if it has none."""
    path = path if path.suffix else path.with_suffix(".json")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"displayTimeUnit": "ns", "traceEvents": list(events)}))
    return path


def slice_tracks(
    process: int, name: str, tracks: Sequence[str], slices: Iterable[Slice]
) -> Iterator[Mapping[str, object]]:
    """Yield the events of a group of tracks with slices.

    On a track slices come one after the other: one that begins before the one before it has ended counts from there.

    Arguments:
        process: number of the group, which orders the groups.
        name: of the group.
        tracks: names, by number.
        slices: those of a track in the order of their beginnings.
    """
    yield from _process(process, name)
    for track, title in enumerate(tracks):
        yield {"ph": "M", "pid": process, "tid": _thread(track), "name": "thread_name", "args": {"name": title}}
    free: dict[int, int] = {}
    for one in slices:
        begin = max(one.begin, free.get(one.track, 0))
        free[one.track] = max(begin, one.end)
        yield {
            "ph": "X",
            "pid": process,
            "tid": _thread(one.track),
            "ts": begin,
            "dur": max(one.end - begin, 0),
            "name": one.name,
            "args": dict(one.args),
        }


def counter_track(
    process: int, name: str, curves: Mapping[str, Sequence[tuple[int, float]]]
) -> Iterator[Mapping[str, object]]:
    """Yield the events of a group of curves, a track for each.

    Arguments:
        process: number of the group, which orders the groups.
        name: of the group.
        curves: by the track's name, (cycle, value from there on), in order; repetitions are left out.
    """
    yield from _process(process, name)
    for track, points in curves.items():
        shown = None
        for cycle, value in points:
            if value != shown:
                yield {"ph": "C", "pid": process, "ts": cycle, "name": track, "args": {"value": value}}
            shown = value


def _process(process: int, name: str) -> Iterator[Mapping[str, object]]:
    yield {"ph": "M", "pid": process, "name": "process_name", "args": {"name": name}}
    yield {"ph": "M", "pid": process, "name": "process_sort_index", "args": {"sort_index": process}}


def _thread(track: int) -> int:
    """Return the thread that stands for a track; 0 would be the idle one."""
    return track + 1
