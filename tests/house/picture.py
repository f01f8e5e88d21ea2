"""Writer of docs/house.svg, a drawing of the package's folders and subpackages ("rooms") with their imports.

The rooms of a panel are ordered so that every import points down. `python -m tests.house.picture` writes the file; a
test checks that it is up to date.
"""

from graphlib import TopologicalSorter
from html import escape

import grimp

from tests.house.tree import FOLDERS, PACKAGE, ROOT

__all__ = ["PICTURE", "picture"]

PICTURE = ROOT / "docs" / "house.svg"

PANELS = ("", "run", "tb", "hdl", "golden", "kernels", "frontends.nki")
"""The package, and the folders with drawn rooms."""

PURPOSES = {
    "spec": "what software and hardware agree on",
    "hdl": "the hardware, in Amaranth",
    "golden": "the same as equations, in numpy",
    "kernels": "the software of the machine",
    "run": "runs programs on every target",
    "frontends": "other people's languages",
    "tb": "verification and the command line",
    "bench": "measurements",
}

SHELF, WIDTH, LEFT, GAP = 26, 300, 20, 40
"""Height of a room, width of a panel's rooms, left margin, distance of panels; in pixels."""

COLUMNS = 2
PITCH = LEFT + WIDTH + 240
"""Horizontal distance of panels in pixels, with space for arcs."""


def rooms_of(graph: grimp.ImportGraph, folder: str) -> dict[str, set[str]]:
    """Return the rooms of a folder, each with the rooms that its modules import."""
    parent = ".".join(filter(None, (PACKAGE, folder)))
    inside = ROOT / PACKAGE / folder.replace(".", "/")
    rooms = [name for name in sorted(graph.find_children(parent)) if (inside / name.rpartition(".")[2]).is_dir()]
    short = {room: room.rpartition(".")[2] for room in rooms}
    return {
        short[a]: {
            short[b] for b in rooms if a != b and graph.direct_import_exists(importer=a, imported=b, as_packages=True)
        }
        for a in rooms
    }


def panel(folder: str, below: dict[str, set[str]], x: float, y: float) -> list[str]:
    order = [*TopologicalSorter(below).static_order()][::-1]
    if not folder:
        order = sorted(order, key=FOLDERS.index, reverse=True)
    middle = {room: y + 30 + SHELF * n + (SHELF - 5) / 2 for n, room in enumerate(order)}
    drawn = [f'<text x="{x}" y="{y + 18}" class="name">{escape(f"{folder}/" if folder else PACKAGE)}</text>']
    for room in order:
        top = middle[room] - (SHELF - 5) / 2
        text = f"{room}    {PURPOSES.get(room, '')}" if not folder else room
        drawn.append(f'<rect x="{x}" y="{top:g}" width="{WIDTH}" height="{SHELF - 5}" rx="3"/>')
        drawn.append(f'<text x="{x + 8}" y="{top + 15:g}" xml:space="preserve">{escape(text)}</text>')
    right = x + WIDTH
    for a in order:
        for b in sorted(below[a], key=order.index):
            start, end = middle[a] + 4, middle[b] - 4
            reach = right + 12 + min(200, 0.55 * (end - start))
            drawn.append(
                f'<path d="M{right} {start:g}C{reach:.0f} {start:g} {reach:.0f} {end:g} {right + 3} {end:g}"/>'
            )
    return drawn


def picture() -> str:
    graph = grimp.build_graph(PACKAGE, cache_dir=None)
    drawn, heights = [], [20.0] * COLUMNS
    for folder in PANELS:
        below = rooms_of(graph, folder)
        column = heights.index(min(heights))
        drawn += panel(folder, below, LEFT + column * PITCH, heights[column])
        heights[column] += 30 + SHELF * len(below) + GAP
    width, height = COLUMNS * PITCH, max(heights)
    body = "\n".join(drawn)
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height:g}" \
font-family="Helvetica, Arial, DejaVu Sans, sans-serif" font-size="13" fill="#333">
<title>The folders and rooms of the package; every arrow is an import, and all of them point down</title>
<!-- Written by python -m tests.house.picture -->
<defs>
<marker id="a" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" markerUnits="userSpaceOnUse" \
orient="auto"><path d="M0 0L10 5L0 10z" style="fill: #2f6db3; stroke: none"/></marker>
<style>
rect {{ fill: #f4f8fc; stroke: #2f6db3; stroke-width: 1 }}
path {{ fill: none; stroke: #2f6db3; stroke-width: 1.1; stroke-opacity: 0.7; marker-end: url(#a) }}
.name {{ font-size: 16px; font-weight: bold; fill: #111 }}
</style>
</defs>
<rect width="{width}" height="{height:g}" style="stroke: none; fill: #fff"/>
{body}
</svg>
"""


if __name__ == "__main__":
    PICTURE.write_text(picture())
