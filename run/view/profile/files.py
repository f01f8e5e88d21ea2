"""Files of a profile."""

import json
from collections.abc import Iterator
from pathlib import Path

from neuroncore_rtl.kernels.text.assembly import record_text
from neuroncore_rtl.run.view.plotting import write_table
from neuroncore_rtl.run.view.profile.figures import Figures
from neuroncore_rtl.run.view.profile.pictures import draw_roofline, draw_timeline
from neuroncore_rtl.run.view.profile.run import ProfiledRun
from neuroncore_rtl.run.view.profile.tracks import Names, profile_tracks
from neuroncore_rtl.run.view.source_lines import cycles_by_line
from neuroncore_rtl.run.view.timeline import write_timeline

__all__ = ["listing", "write_profile"]


def write_profile(directory: Path, run: ProfiledRun, hbm_width: int) -> Figures:
    """Write all files of a run's profile; return its figures. HBM moves `hbm_width` bytes per cycle.

    timeline.json is for https://ui.perfetto.dev; listing.txt has instructions and cycles; lines.csv and lines.parquet
    have the cycles by line of the kernel.
    """
    directory.mkdir(parents=True, exist_ok=True)
    figures = Figures(run, hbm_width)
    write_timeline(directory / "timeline.json", profile_tracks(run))
    (directory / "summary.json").write_text(json.dumps(figures.summary(), indent=2) + "\n")
    (directory / "utilisation.json").write_text(json.dumps(figures.monitor(), indent=2) + "\n")
    (directory / "listing.txt").write_text(listing(run))
    write_table(_lines(run), directory / "lines")
    draw_timeline(directory / "timeline.png", run)
    draw_roofline(directory / "roofline.png", figures)
    return figures


def _lines(run: ProfiledRun) -> list[dict[str, object]]:
    """Return a row per line that appends instructions, and per line of the user's kernel that calls it."""
    costs = cycles_by_line(((ran.entry, ran.issued, ran.retired) for ran in run.records), run.cycles, lambda one: one)
    return [
        {
            "file": source.kernel.file,
            "line": source.kernel.number,
            "code": source.kernel.code,
            "user_file": source.user.file,
            "user_line": source.user.number,
            "user_code": source.user.code,
            "cycles": cost.cycles,
            "share": cost.cycles / max(run.cycles, 1),
            "records": cost.records,
        }
        for source, cost in costs.items()
    ]


def listing(run: ProfiledRun) -> str:
    """Return the table of a run's records."""
    rows = [("queue", "fetched", "issued", "retired", "record"), *_listing_rows(run)]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    lines = []
    for queue, *cycles, text in rows:
        cells = [queue.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(cycles, widths[1:], strict=True))]
        lines.append("  ".join([*cells, text]))
    return "".join(f"{line}\n" for line in lines)


def _listing_rows(run: ProfiledRun) -> Iterator[tuple[str, ...]]:
    names = Names(run.space)
    for ran in run.records:
        cycles = ("-" if cycle is None else f"{cycle:,}" for cycle in (ran.fetched, ran.issued, ran.retired))
        tensors = " ".join(f"{name}={tensor}" for name, tensor in names.of(ran).items())
        remark = f"  # {tensors}{', ' if tensors else ''}{ran.entry.source}"
        yield run.queue_name(ran.queue), *cycles, f"{record_text(ran.record)}{remark}"
