"""Picture of an instance: its chips in a ring or a torus, and the utilisation of each direction of each link."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from neuroncore_rtl.run.view import link_geometry as geometry
from neuroncore_rtl.run.view.plotting import new_figure, write_plot
from neuroncore_rtl.spec.instance import Instance, Topology
from neuroncore_rtl.spec.link import CORES_PER_CHIP

__all__ = ["draw_links"]

INK, FAINT, ALARM, CHIP = "#22303c", "#7d8b99", "#d3263c", "#f4f6f8"
"""Colours of text, secondary text, faults, and chips."""

LOADS = ("#d5dde4", "#8cc9c1", "#2c8eb4", "#1b3a70")
"""Colours of links from idle to always busy."""

THIN, THICK = 0.018, 0.058
"""Arrow widths of an idle and a busy link, in distances of neighbouring chips."""

LEFT, RIGHT, TOP, BOTTOM = 0.2, 1.15, 1.0, 0.15
"""Inches around the chips, for the colour bar on the right and text above."""

LEAST = (6.4, 4.2)
"""Minimum size of a picture in inches."""

DETAILED = 16
"""Maximum number of chips of a ring for which the picture shows the load beside each link."""


def shape_of(instance: Instance) -> str:
    if instance.topology == Topology.RING:
        return f"a ring of {instance.chips} chips"
    return f"a torus of {instance.chips // instance.width} x {instance.width} chips"


def draw_links(
    path: Path, instance: Instance, table: Mapping[str, Mapping[str, Any]], what: str, remark: str = ""
) -> Path:
    """Draw the links of an instance, with the activity of a `link_table`; `what` names the run in the title."""
    centres, arrows, rows = geometry.chip_places(instance), geometry.link_arrows(instance), list(table.values())
    corners = np.concatenate(
        [centres - geometry.CHIP_RADIUS, centres + geometry.CHIP_RADIUS, *(arrow.points for arrow in arrows.values())]
    )
    low, high = corners.min(axis=0) - 0.12, corners.max(axis=0) + 0.12
    scale = float(np.clip(14 / (high - low).max(), 0.62, 1.55))  # inches of a distance of neighbours
    width, height = np.maximum((high - low) * scale + (LEFT + RIGHT, TOP + BOTTOM), LEAST)
    figure = new_figure(width, height)
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LinearSegmentedColormap, Normalize

    inner = height - TOP - BOTTOM
    axes = figure.add_axes((LEFT / width, BOTTOM / height, 1 - (LEFT + RIGHT) / width, inner / height))
    axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), aspect="equal")
    axes.axis("off")

    loads = ScalarMappable(Normalize(0, 100), LinearSegmentedColormap.from_list("loads", LOADS))
    detailed = instance.topology == Topology.RING and instance.chips <= DETAILED
    for wire, arrow in arrows.items():
        _draw_arrow(axes, arrow, rows[wire], loads, detailed=detailed)
    for chip, centre in enumerate(centres):
        _draw_chip(axes, chip, centre, scale)

    tall = min(3.4, 0.7 * inner)
    place = (1 - 0.85 / width, (BOTTOM + (inner - tall) / 2) / height, 0.13 / width, tall / height)
    bar = figure.colorbar(loads, cax=figure.add_axes(place))
    bar.set_label("cycles with a flit, percent", color=INK, fontsize=8)
    bar.ax.tick_params(labelsize=8, colors=INK, length=2)
    bar.outline.set_visible(False)
    title = {"s": f"{what} on {shape_of(instance)}", "color": INK, "fontsize": 12, "weight": "bold", "va": "top"}
    figure.text(0.3 / width, 1 - 0.22 / height, **title)
    below = {"s": _caption(instance, table, remark), "color": FAINT, "fontsize": 8, "va": "top", "linespacing": 1.4}
    figure.text(0.3 / width, 1 - 0.5 / height, **below)
    return write_plot(figure, path, [{"link": name, **row} for name, row in table.items()])


def _draw_arrow(axes, arrow: geometry.Arrow, row: Mapping[str, Any], loads, *, detailed: bool) -> None:
    from matplotlib.patches import Polygon

    load = 100 * row["utilisation"]
    if row["dead"]:
        shaft, head = geometry.head_of(arrow.points, THIN)
        axes.plot(*shaft.T, color=ALARM, lw=1.6, ls=(0, (3, 2)), zorder=5)
        axes.add_patch(Polygon(head, fc=ALARM, ec="none", zorder=5))
    else:
        thickness = THIN + (THICK - THIN) * min(load, 100) / 100
        outline = geometry.outline_of(*geometry.head_of(arrow.points, thickness), thickness)
        order = (3 if arrow.long else 4) + load / 1000
        axes.add_patch(Polygon(outline, fc=loads.to_rgba(load), ec="white", lw=0.9, zorder=order))
        if detailed:
            words = {"color": FAINT, "fontsize": 8, "ha": "center", "va": "center", "zorder": 6}
            axes.text(*(geometry.point_at(arrow.points, 0.5) + 0.17 * arrow.side), f"{load:.0f}%", **words)
    if row["retries"]:
        box = {"boxstyle": "round,pad=0.22", "fc": ALARM, "ec": "white", "lw": 0.7}
        words = {"color": "white", "fontsize": 6.5, "ha": "center", "va": "center", "zorder": 7, "bbox": box}
        axes.text(*geometry.point_at(arrow.points, arrow.mark), f"{row['retries']:,}", **words)


def _draw_chip(axes, chip: int, centre: np.ndarray, scale: float) -> None:
    from matplotlib.patches import Circle

    axes.add_patch(Circle(tuple(centre), geometry.CHIP_RADIUS, fc=CHIP, ec=INK, lw=1.3, zorder=8))
    words = {"ha": "center", "va": "center", "zorder": 9}
    axes.text(*(centre + (0, 0.035)), str(chip), color=INK, fontsize=7.2 * scale, weight="bold", **words)
    first = chip * CORES_PER_CHIP
    cores = f"cores {first}, {first + CORES_PER_CHIP - 1}"
    axes.text(*(centre - (0, 0.09)), cores, color=FAINT, fontsize=2.8 * scale, **words)


def _caption(instance: Instance, table: Mapping[str, Mapping[str, Any]], remark: str) -> str:
    shares = [row["utilisation"] for row in table.values()]
    measured = f"a link is busy {sum(shares) / len(shares):.0%} of them on average, {max(shares):.0%} at most"
    marks = ["outer arrows lead up, inner ones down"] if instance.topology == Topology.RING else []
    if any(row["retries"] for row in table.values()):
        marks.append("red numbers: retries")
    if any(row["dead"] for row in table.values()):
        marks.append("dashed: dead")
    return "\n".join([f"{remark}; {measured}" if remark else measured, "; ".join(marks)])
