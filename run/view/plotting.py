"""Plots without a display, each with a file of its data."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from neuroncore_rtl.run.sim.packages import require_packages
from neuroncore_rtl.run.view.table_files import write_table

__all__ = ["new_figure", "write_plot"]


def new_figure(width: float, height: float, **options: Any):
    """Return an empty `matplotlib.figure.Figure`, sizes in inches; install matplotlib if it is missing."""
    require_packages("plots")
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), **options)


def write_plot(figure: Any, path: Path, rows: Sequence[Mapping], dpi: int = 130) -> Path:
    """Write a figure as `path`, a PNG or SVG, and its data as CSV and Parquet files beside it; return `path`.

    Arguments:
        figure: from `new_figure`.
        path: file of the picture; its folder is made if it is missing.
        rows: every plotted point, or the values from which the points follow, by column.
        dpi: pixels per inch.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=dpi, facecolor="white")
    write_table(rows, path.with_suffix(""))
    return path
