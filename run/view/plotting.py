"""Pictures and tables as files, without a display: plots with their data, SVG as PNG or GIF, CSV and Parquet."""

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

from neuroncore_rtl.run.files import whole_file, write_text
from neuroncore_rtl.run.sim.packages import require_packages

__all__ = ["new_figure", "svg_to_png", "write_gif", "write_parquet", "write_plot", "write_table"]

ZOOM = 1.5
"""Pixels of a PNG or GIF per pixel of its SVG."""


def new_figure(width: float, height: float, **options: Any):
    """Return an empty `matplotlib.figure.Figure`, sizes in inches; install matplotlib if it is missing."""
    require_packages("plots")
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), **options)


def write_plot(figure: Any, path: Path, rows: Sequence[Mapping], dpi: int = 130) -> Path:
    """Write a figure as `path`, a PNG or SVG, and its data as CSV and Parquet files beside it; return `path`.

    `rows` have every plotted point, or the values from which the points follow, by column.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=dpi, facecolor="white")
    write_table(rows, path.with_suffix(""))
    return path


def write_table(rows: Sequence[Mapping], path: Path) -> list[Path]:
    """Write at least one row as `<path>.csv` and `<path>.parquet`, with a column for each name; return both paths."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    text = path.with_name(f"{path.name}.csv")
    with text.open("w", newline="") as file:
        csv.writer(file).writerows([columns, *([row.get(name) for name in columns] for row in rows)])
    return [text, write_parquet(rows, path.with_name(f"{path.name}.parquet"))]


def write_parquet(rows: Iterable[Mapping], path: Path) -> Path:
    """Write at least one row as Parquet, completely or not at all, with a column for each name; return the path.

    Columns of integers are BIGINT, of numbers DOUBLE, of booleans BOOLEAN, others VARCHAR; missing values are NULL.
    Parquet readers ignore the case of names: of two names that differ only in case, the second gets an underscore.
    """
    require_packages("plots")
    import duckdb

    rows = _renamed(list(rows))
    columns = {name: _type([row.get(name) for row in rows]) for name in dict.fromkeys(n for row in rows for n in row)}
    lines = write_text(path.with_name(f".{path.name}.json"), "".join(json.dumps(row) + "\n" for row in rows))
    try:
        with whole_file(path) as unfinished, duckdb.connect() as database:
            table = database.read_json(str(lines), columns=columns, format="newline_delimited")
            table.write_parquet(str(unfinished))
    finally:
        lines.unlink()
    return path


def _renamed(rows: list[Mapping]) -> list[Mapping]:
    """Return the rows with column names that differ in more than case."""
    taken: dict[str, str] = {}
    names = {}
    for name in dict.fromkeys(name for row in rows for name in row):
        own = name
        while taken.setdefault(own.lower(), name) != name:
            own += "_"
        names[name] = own
    return [{names[name]: value for name, value in row.items()} for row in rows]


def _type(values: list) -> str:
    kinds = {float if isinstance(value, float) else type(value) for value in values if value is not None}
    for name, members in (("BOOLEAN", {bool}), ("BIGINT", {int}), ("DOUBLE", {int, float})):
        if kinds and kinds <= members:
            return name
    return "VARCHAR"


def svg_to_png(svg: str) -> bytes:
    """Return a drawing as PNG, with the fonts of matplotlib, so that it looks the same on every machine."""
    require_packages("plots")
    import matplotlib
    import resvg_py

    return resvg_py.svg_to_bytes(
        svg_string=svg,
        background="white",
        zoom=ZOOM,
        skip_system_fonts=True,
        font_dirs=[str(Path(matplotlib.get_data_path()) / "fonts" / "ttf")],
        font_family="DejaVu Sans",
        sans_serif_family="DejaVu Sans",
    )


def write_gif(svgs: Iterable[str], path: Path, seconds: float) -> Path:
    """Write drawings as a GIF that shows each of them for `seconds`, and repeats; return its path."""
    pictures = [svg_to_png(svg) for svg in svgs]
    from PIL import Image

    # All frames share the colours of the last one.
    images = [Image.open(BytesIO(picture)).convert("RGB") for picture in pictures]
    palette = images[-1].quantize(64)
    first, *others = (image.quantize(palette=palette, dither=Image.Dither.NONE) for image in images)
    first.save(path, save_all=True, append_images=others, duration=round(1000 * seconds), loop=0)
    return path
