"""Parts of a page: the images that ran on the cores, each with its causes of cycles, its timeline and its memory."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from neuroncore_rtl.kernels.program.image import Image
from neuroncore_rtl.run.arrays import numbers_of
from neuroncore_rtl.run.page.bars import bar_group
from neuroncore_rtl.run.report import set_within
from neuroncore_rtl.run.result import Result, hbm_width, queue_cycles
from neuroncore_rtl.run.view.profile import tracks
from neuroncore_rtl.run.view.profile.figures import Figures
from neuroncore_rtl.run.view.profile.run import ProfiledRun, modelled_run, simulated_run
from neuroncore_rtl.run.view.source_lines import line_table
from neuroncore_rtl.run.view.timeline import Slice
from neuroncore_rtl.run.view.tracks import queue_tracks
from neuroncore_rtl.run.wrong_tile import WrongTile, first_wrong_tile
from neuroncore_rtl.spec.isa import Storage

__all__ = ["PageParts", "collect_parts", "note_result", "profiled_runs"]

MOST_PARTS = 4  # parts of a page; it counts the others
MOST_BARS = 20_000, 4_000  # bars of the first part, and of each other one
MOST_POINTS = 2_000  # points of a curve
MOST_LINES = 12  # lines of the kernel with the most cycles
MOST_CURVES = 8  # curves of a group that are drawn


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
        for title, run, outcome in profiled_runs(result):
            if len(self.parts) < MOST_PARTS:
                figures = result.profiled or Figures(run, hbm_width(run.config, bandwidth))
                self.parts.append({"name": title, **_part(figures, outcome, MOST_BARS[bool(self.parts)])})
            else:
                self.omitted += 1
        if result.outcome is not None and not result.outcome.host and len(self.parts) < MOST_PARTS:
            if groups := [*_other_groups(result, MOST_BARS[1])]:
                title = result.job.title or result.job.name
                self.parts.append({"name": title, "cycles": result.cycles, "groups": groups})


_COLLECTED: ContextVar[PageParts | None] = ContextVar("collected", default=None)


def collect_parts() -> AbstractContextManager[PageParts | None]:
    """Collect the parts of one page from the runs in this context; None within another such context."""
    return nullcontext() if _COLLECTED.get() is not None else set_within(_COLLECTED, PageParts())


def note_result(result: Result, bandwidth: int) -> None:
    """Add a result to the page that is being collected, if any; `bandwidth`: see `hbm_width`."""
    if (parts := _COLLECTED.get()) is not None:
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
        numbers = partial(numbers_of, fmt=tensor.format)
        if (tile := first_wrong_tile(tensor.name, found, expected, side, numbers)) is not None:
            return tile
    return None


def profiled_runs(result: Result) -> Iterator[tuple[str, ProfiledRun, Any]]:
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
            title = f"{name}, {what} {number}" if len(images) > 1 else name
            yield title, simulated_run(name, image, part), part


def _part(figures: Figures, outcome: Any, most: int) -> dict[str, object]:
    run = figures.run
    roofline = {"peak": figures.peak, "width": figures.hbm_width, "operations": figures.product_flops}
    roofline |= {"bytes": figures.hbm_bytes, "intensity": figures.intensity}
    roofline |= {"reached": figures.product_flops / max(run.cycles, 1)}
    found: dict[str, object] = {"cycles": run.cycles, "roofline": roofline, "lines": _lines(run)}
    if outcome is not None:
        found["queues"] = queue_cycles(outcome, run.config)
    if run.busy:
        found["causes"] = figures.stalls
    queues, names = queue_tracks(run.config), tracks.Names(run.space)

    def describe(number: int) -> tuple[str, str]:
        ran = run.records[number]
        tensors = " ".join(f"{operand}={tensor}" for operand, tensor in names.of(ran).items())
        return tracks.instruction_name(ran), "; ".join(filter(None, (str(ran.entry.source), tensors)))

    slices = (
        Slice(tracks.instruction_track(run, ran), ran.issued, run.end_of(ran), "", {}, tracks.track_kind(ran), number)
        for number, ran in enumerate(run.records)
    )
    groups = [bar_group("instructions", queues, slices, most, describe)]
    if run.busy:
        groups.append(bar_group("stalls", queues[:-1], tracks.stall_slices(run), most))
        groups.insert(0, bar_group("controller", ["controller"], tracks.controller_slices(run), most // 10))
    curves = (
        ("SBUF", "bytes of a partition", run.config.sbuf_bytes, tracks.occupancy(run, Storage.SBUF)),
        ("PSUM", "bytes of a partition", run.config.psum_bytes, tracks.occupancy(run, Storage.PSUM)),
        ("HBM", "bytes", None, tracks.hbm_occupancy(run)),
    )
    memory = [{"name": name, "unit": unit, "room": room, **_curve(at, run.cycles)} for name, unit, room, at in curves]
    return found | {"groups": groups, "memory": memory}


def _lines(run: ProfiledRun) -> list[dict[str, object]]:
    """Return the lines of the kernel with the most cycles; `of`: the user's line that calls a kernel of the library."""
    costs, found = run.costs, []
    for source in sorted(costs, key=lambda source: -costs[source].cycles)[:MOST_LINES]:
        (row,) = line_table({source.kernel: costs[source]}, run.cycles)
        found.append({"line": row["line"], "of": "" if source.user == source.kernel else str(source.user), **row})
    return found


def _other_groups(result: Result, most: int) -> Iterator[dict[str, object]]:
    """Yield the tracks of a result that are no core's with program entries, such as those of links."""
    known = any(image.entries and image.space is not None for image in _images(result))
    for group in result.job.tracks(result.outcome):
        if group.tracks and not known:
            yield bar_group(group.name, group.tracks, group.slices, most)
        elif group.curves and len(group.curves) <= MOST_CURVES:
            curves = [{"name": name, **_curve(points, result.cycles or 0)} for name, points in group.curves.items()]
            yield {"name": group.name, "curves": curves}


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
