"""Parts of a page: the images that ran on the cores, each with its causes of cycles, its timeline and its memory."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import numpy as np

from neuroncore_rtl.kernels.program.image import Image
from neuroncore_rtl.kernels.program.source import Line
from neuroncore_rtl.run.arrays import numbers_of
from neuroncore_rtl.run.page.bars import Bar, bar_group
from neuroncore_rtl.run.result import Result, hbm_width, queue_cycles
from neuroncore_rtl.run.view.profile.figures import Figures
from neuroncore_rtl.run.view.profile.run import ProfiledRun, modelled_run, recorded_run, simulated_run
from neuroncore_rtl.run.view.profile.tracks import (
    LOADING,
    Names,
    controller_slices,
    hbm_occupancy,
    instruction_name,
    instruction_track,
    occupancy,
    stall_slices,
    track_kind,
)
from neuroncore_rtl.run.view.source_lines import cycles_by_line, short_code
from neuroncore_rtl.run.view.timeline import Slice, TrackGroup
from neuroncore_rtl.run.wrong_tile import WrongTile, first_wrong_tile
from neuroncore_rtl.spec.isa import Storage, queue_count

__all__ = ["PageParts", "collect_parts", "note_result"]

MOST_PARTS = 4
"""Parts of a page; it counts the others."""

MOST_BARS = 20_000, 4_000
"""Bars of the first part, and of each other one."""

MOST_POINTS = 2_000
"""Points of a curve."""

MOST_LINES = 12
"""Lines of the kernel with the most cycles."""

MOST_TEXT = 200
"""Characters of the details of a bar."""

MOST_CURVES = 8
"""Curves of a group that are drawn."""


class PageParts:
    """Parts of a page, the number of those that it leaves out, and the first difference from golden."""

    def __init__(self):
        self.parts: list[dict[str, object]] = []
        self.omitted = 0
        self.wrong_tile: WrongTile | None = None
        self.differences: Sequence[str] = ()
        self.files: dict[str, Path | str] = {}

    def note(self, result: Result, bandwidth: int) -> None:
        if result.mismatches and not self.differences:
            self.differences = result.differences
            self.wrong_tile = _wrong_tile(result)
        if result.job.name is None or not result.job.pictures:
            return
        found = {**result.files, **({"profile": result.profile} if result.profile else {})}
        self.files = {**found, **self.files}
        if len(self.parts) >= MOST_PARTS:
            self.omitted += 1
            return
        for title, run, outcome in _runs(result):
            if len(self.parts) < MOST_PARTS:
                figures = result.profiled or Figures(run, hbm_width(run.config, bandwidth))
                most = MOST_BARS[bool(self.parts)]
                self.parts.append({"name": title, **_part(figures, outcome, most)})
            else:
                self.omitted += 1
        if result.outcome is not None and not result.outcome.host and len(self.parts) < MOST_PARTS:
            groups = [*_other_groups(result, MOST_BARS[1])]
            if groups:
                title = result.job.title or result.job.name
                self.parts.append({"name": title, "cycles": result.cycles, "groups": groups})


_COLLECTED: ContextVar[PageParts | None] = ContextVar("collected", default=None)


@contextmanager
def collect_parts() -> Iterator[PageParts | None]:
    """Collect the parts of one page from the runs in this context; None within another such context."""
    if _COLLECTED.get() is not None:
        yield None
        return
    token = _COLLECTED.set(PageParts())
    try:
        yield _COLLECTED.get()
    finally:
        _COLLECTED.reset(token)


def note_result(result: Result, bandwidth: int) -> None:
    """Add a result to the page that is being collected, if any; `bandwidth`: see `hbm_width`."""
    parts = _COLLECTED.get()
    if parts is not None:
        parts.note(result, bandwidth)


def _images(result: Result) -> Sequence[Image]:
    return getattr(result.job, "images", ())


def _wrong_tile(result: Result) -> WrongTile | None:
    """Return the first wrong tile of the first tensor in HBM that differs from golden's."""
    images = _images(result)
    if result.expected is None or not images or images[0].space is None or len(result.hbm) > 1:
        return None
    side, golden = result.job.config.columns, result.expected.memories["hbm"]
    own = np.where(result.read_back["hbm"], result.hbm, golden) if result.read_back else result.hbm
    for tensor in (one for one in images[0].space.hbm_tensors if one.size):
        codes = [tensor.elements(memory[0]) for memory in (own, golden)]
        found, expected = (one.reshape(-1, (one.shape or (1,))[-1]) for one in codes)
        tile = first_wrong_tile(tensor.name, found, expected, side, lambda one, fmt=tensor.format: numbers_of(one, fmt))
        if tile is not None:
            return tile
    return None


def _runs(result: Result) -> Iterator[tuple[str, ProfiledRun, Any]]:
    """Yield the images of a result that ran with program entries: title, run, and outcome if simulated."""
    images = _images(result)
    outcome, name = result.outcome, str(result.job.name)
    if result.prediction is not None:
        if images[0].entries and images[0].space is not None:
            yield name, modelled_run(name, images[0], result.prediction), None
        return
    what = "core" if result.job.instance is not None else "image"
    for number, (image, part) in enumerate(zip(images, (outcome.parts.values() if outcome else ()), strict=False)):
        if image.entries and image.space is not None:
            run = (simulated_run if any(part.activity.values()) else recorded_run)(name, image, part)
            yield f"{name}, {what} {number}" if len(images) > 1 else name, run, part


def _part(figures: Figures, outcome: Any, most: int) -> dict[str, object]:
    run = figures.run
    found: dict[str, object] = {
        "cycles": run.cycles,
        "roofline": {
            "peak": figures.peak,
            "width": figures.hbm_width,
            "operations": figures.product_flops,
            "bytes": figures.hbm_bytes,
            "intensity": figures.intensity,
            "reached": figures.product_flops / max(run.cycles, 1),
        },
        "lines": _lines(run),
    }
    if outcome is not None:
        found["queues"] = queue_cycles(outcome, run.config)
    if run.busy:
        found["causes"] = {
            queue: {cause.name.lower(): count for cause, count in causes.items()}
            for queue, causes in figures.stalls.items()
        }
    queues = [run.queue_name(queue) for queue in range(queue_count(run.config))]
    names = Names(run.space)

    def describe(label: Any) -> tuple[str, str]:
        ran = run.records[label]
        tensors = " ".join(f"{operand}={tensor}" for operand, tensor in names.of(ran).items())
        return instruction_name(ran), "; ".join(filter(None, (str(ran.entry.source), tensors)))

    bars = (
        Bar(instruction_track(run, ran), ran.issued, run.end_of(ran), track_kind(ran), number)
        for number, ran in enumerate(run.records)
    )
    groups = [bar_group("instructions", [*queues, LOADING], bars, describe, most)]
    if run.busy:
        groups.append(_slices("stalls", queues, stall_slices(run), most))
        groups.insert(0, _slices("controller", ["controller"], controller_slices(run), most // 10))
    found["groups"] = groups
    curves = {
        "SBUF": ("bytes of a partition", run.config.sbuf_bytes, occupancy(run, Storage.SBUF)),
        "PSUM": ("bytes of a partition", run.config.psum_bytes, occupancy(run, Storage.PSUM)),
        "HBM": ("bytes", None, hbm_occupancy(run)),
    }
    found["memory"] = [
        {"name": name, "unit": unit, "room": room, **_curve(points, run.cycles)}
        for name, (unit, room, points) in curves.items()
    ]
    return found


def _lines(run: ProfiledRun) -> list[dict[str, object]]:
    """Return the lines of the kernel with the most cycles; `of`: the user's line that calls a kernel of the library."""
    costs = cycles_by_line(((ran.entry, ran.issued, ran.retired) for ran in run.records), run.cycles, lambda one: one)
    costly = sorted(costs, key=lambda source: -costs[source].cycles)[:MOST_LINES]

    def row(line: Line, of: Line, cost: Any) -> dict[str, object]:
        engines = " ".join(engine.name.lower() for engine in cost.engines)
        caller = "" if of == line else str(of)
        figures = {"engine": engines, "cycles": cost.cycles, "share": cost.cycles / max(run.cycles, 1)}
        return {"line": str(line), "of": caller, **figures, "records": cost.records, "code": short_code(line)}

    return [row(source.kernel, source.user, costs[source]) for source in costly]


def _other_groups(result: Result, most: int) -> Iterator[dict[str, object]]:
    """Yield the tracks of a result that are no core's with program entries, such as those of links."""
    known = any(image.entries and image.space is not None for image in _images(result))
    for group in result.job.tracks(result.outcome):
        if group.tracks and not known:
            yield _slices(group.name, group.tracks, group.slices, most)
        elif group.curves and len(group.curves) <= MOST_CURVES:
            yield _curves(group, result.cycles or 0)


def _slices(name: str, tracks: Sequence[str], slices: Iterable[Slice], most: int) -> dict[str, object]:
    kept = sorted(slices, key=lambda one: (one.track, one.begin))

    def describe(label: Any) -> tuple[str, str]:
        one = kept[label]
        told = [str(value) if key == "meaning" else f"{key} {value}" for key, value in one.args.items()]
        return one.name, ", ".join(told)[:MOST_TEXT]

    bars = (Bar(one.track, one.begin, one.end, one.kind, number) for number, one in enumerate(kept))
    return bar_group(name, tracks, bars, describe, most)


def _curves(group: TrackGroup, cycles: int) -> dict[str, object]:
    curves = [{"name": name, **_curve(points, cycles)} for name, points in group.curves.items()]
    return {"name": group.name, "curves": curves}


def _curve(points: Sequence[tuple[int, float]], cycles: int) -> dict[str, object]:
    """Return a curve in steps; of a long one, the largest value in each of equal windows."""
    window = 1
    while len(points) > MOST_POINTS:
        window *= 2
        largest: dict[int, tuple[int, float]] = {}
        for cycle, value in points:
            at = cycle // window
            if at not in largest or value > largest[at][1]:
                largest[at] = cycle, value
        points = [*largest.values()]
    last = [(cycles, points[-1][1])] if points and points[-1][0] < cycles else []
    x, y = zip(*points, *last, strict=True) if points else ((), ())
    return {"x": [*x], "y": [*y], "window": window}
