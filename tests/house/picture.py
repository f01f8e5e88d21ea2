"""Draws docs/house.svg, the floors and rooms with their arrows, from the imports that there are.

`python -m tests.house.picture` writes it; a test holds it up to date.
"""

from itertools import pairwise
from textwrap import wrap
from xml.sax.saxutils import escape

from tests.house.test_layers import ROOMS, ROOT, graph

PICTURE = ROOT / "docs" / "house.svg"

COLOURS = {
    "spec": ("#eeeeee", "#777777"),
    "hdl": ("#fdf0df", "#c77d1b"),
    "golden": ("#fbf3cf", "#a98a12"),
    "kernels": ("#eaf4e5", "#4f8a3c"),
    "frontends": ("#e4f3f1", "#2f8a80"),
    "tb": ("#e6f0fa", "#2f6db3"),
    "bench": ("#f2eafa", "#7c4bb0"),
}
"""Fill and border of each folder."""

SAYINGS = {
    "spec": "the ground: what software and hardware agree on",
    "hdl": "the hardware, in Amaranth",
    "golden": "the same as equations, in numpy",
    "kernels": "the software of the machine",
    "bench": "measurements",
    "frontends": "others' kernels",
    "cli": "the command line, the registry of TESTs",
    "campaign": "many runs, on many workers, kept as rows",
    "benches": "one file a TEST: asked, compared, printed",
    "view": "waveforms, timelines, pictures",
    "stimulus": "random and hostile programs, operands",
    "proofs": "properties, for a solver",
    "check": "comparison, races, ordering, costs",
    "harness": "a device and the Verilog around it",
    "lanes": "replicated modules to vector code",
    "sim": "elaborate, build, cache, run",
}

WIDTH = 1000
SHELF = 42  # from one room of the testbench to the next, in pixels

STOREY, GAP = 130, 44  # height of a floor, and what is between two

LEFT, ROOM_WIDTH = 175, 440
TOP = 22


CAPTION = "An arrow is an import. tb, bench and cli also use what lies further below; nothing looks up, or aside."


def rooms_of(folder: str) -> list[str]:
    """Return the rooms of a floor's folder; of one with few of them the modules too."""
    names = sorted({name.split(".")[1] for name in graph() if name.startswith(f"{folder}.")})
    return [name for name in names if folder == "spec" or (ROOT / folder / name).is_dir()]


def arrows() -> tuple[set[tuple[str, str]], set[tuple[str, str]]]:
    """Return which folders import from which, and which rooms of the testbench."""
    pairs = {(*a.split(".")[:2], *b.split(".")[:2]) for a, targets in graph().items() for b in targets if "." in a + b}
    folders = {(name[0], name[2]) for name in pairs if name[0] != name[2]}
    rooms = {(name[1], name[3]) for name in pairs if name[0] == name[2] == "tb" and name[1] != name[3]}
    return folders, {(a, b) for a, b in rooms if a in ROOMS and b in ROOMS}


def text(x: float, y: float, words: str, style: str = "") -> str:
    attribute = f' class="{style}"' if style else ""
    return f'<text x="{x:g}" y="{y:g}"{attribute}>{escape(words)}</text>'


def box(folder: str, x: float, y: float, width: float, height: float) -> str:
    fill, border = COLOURS[folder]
    return f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="5" fill="{fill}" stroke="{border}"/>'


def floor(folder: str, x: float, y: float, width: float, height: float) -> list[str]:
    """Draw a folder with its name, what it is for, and its rooms."""
    lines = wrap("   ".join(rooms_of(folder)), int(width / 7.2))
    return [
        box(folder, x, y, width, height),
        text(x + 12, y + 24, f"{folder}/", "name"),
        text(x + 12, y + 44, SAYINGS[folder], "small"),
        *(text(x + 12, y + 70 + 17 * n, line.replace("   ", "\u2002 "), "room") for n, line in enumerate(lines)),
    ]


def arrow(imports: bool, path: str) -> list[str]:
    """Draw an arrow if there is such an import."""
    return [f'<path class="down" d="{path}"/>'] * imports


def testbench(rooms: set[tuple[str, str]], y: float) -> list[str]:
    """Draw the rooms of the testbench as shelves, and what they import as arcs beside them."""
    height = SHELF * len(ROOMS) + 44
    drawn = [box("tb", LEFT - 15, y, ROOM_WIDTH + 250, height), text(LEFT, y + 26, "tb/", "name")]
    drawn.append(text(LEFT + 34, y + 26, "the testbench: looks down on all", "small"))
    middle = {}
    for n, room in enumerate(reversed(ROOMS)):
        top = y + 38 + SHELF * n
        middle[room] = top + (SHELF - 6) / 2
        drawn.append(f'<rect class="shelf" x="{LEFT}" y="{top:g}" width="{ROOM_WIDTH}" height="{SHELF - 6}" rx="4"/>')
        drawn += [text(LEFT + 12, top + 23, room, "shelfname"), text(LEFT + 100, top + 23, SAYINGS[room], "small")]
    right = LEFT + ROOM_WIDTH
    leaving, arriving = -5, 5
    for a, b in sorted(rooms):
        start, end = middle[a] + arriving, middle[b] + leaving
        reach = right + 20 + 0.62 * (end - start)
        drawn.append(
            f'<path class="arc" d="M{right} {start:g}C{reach:.0f} {start:g} {reach:.0f} {end:g} {right + 4} {end:g}"/>'
        )
    return drawn


def picture() -> str:
    """Return the whole drawing, as SVG."""
    folders, rooms = arrows()
    tb_bottom = TOP + SHELF * len(ROOMS) + 44
    middle, ground = tb_bottom + GAP, tb_bottom + STOREY + 2 * GAP
    third = (WIDTH - 2 * 30 - 2 * 20) / 3
    lefts = [30 + n * (third + 20) for n in range(3)]
    drawn = testbench(rooms, TOP)
    bench_y = TOP + 120
    drawn += [
        box("bench", 30, bench_y, 105, 62),
        text(42, bench_y + 27, "bench/", "name"),
        text(42, bench_y + 47, SAYINGS["bench"], "small"),
        *arrow(("bench", "tb") in folders, f"M135 {bench_y + 31}H156"),
    ]
    beside, front_y = LEFT - 15 + ROOM_WIDTH + 250, tb_bottom - 110
    drawn += [
        box("frontends", beside + 18, front_y, 120, 62),
        text(beside + 28, front_y + 27, "frontends/", "name"),
        text(beside + 28, front_y + 47, SAYINGS["frontends"], "small"),
        *arrow(("tb", "frontends") in folders, f"M{beside} {front_y + 31}H{beside + 14}"),
        *arrow(("frontends", "kernels") in folders, f"M{beside + 78} {front_y + 62}V{middle - 4}"),
    ]
    for folder, left in zip(("hdl", "golden", "kernels"), lefts, strict=True):
        drawn += floor(folder, left, middle, third, STOREY)
        centre = left + third / 2
        drawn += arrow(("tb", folder) in folders, f"M{centre:g} {tb_bottom}V{middle - 4}")
        drawn += arrow((folder, "spec") in folders, f"M{centre:g} {middle + STOREY}V{ground - 4}")
    drawn += floor("spec", 30, ground, WIDTH - 60, 96)
    for a, b in pairwise(lefts):
        drawn.append(text((a + third + b) / 2, middle + STOREY / 2 + 6, "\u2260", "wall"))
    drawn.append(text(30, ground + 118, CAPTION, "small"))
    body = "\n".join(drawn)
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {ground + 130:g}" \
font-family="Helvetica, Arial, DejaVu Sans, sans-serif" font-size="13" fill="#333">
<title>The house: floors and rooms, imports going down only</title>
<!-- Written by python -m tests.house.picture -->
<defs>
<marker id="a" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="9" markerHeight="9" markerUnits="userSpaceOnUse" \
orient="auto"><path d="M0 0L10 5L0 10z" fill="#444"/></marker>
<marker id="r" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" markerHeight="8" markerUnits="userSpaceOnUse" \
orient="auto"><path d="M0 0L10 5L0 10z" fill="#2f6db3"/></marker>
<style>
rect {{ stroke-width: 1.5 }} .shelf {{ fill: #fff; stroke: #2f6db3; stroke-width: 1 }}
.name {{ font-size: 17px; font-weight: bold; fill: #111 }}
.shelfname {{ font-size: 14px; font-weight: bold; fill: #111 }}
.small {{ font-size: 12px; fill: #555 }} .room {{ font-size: 12.5px }}
.wall {{ font-size: 22px; fill: #b33; text-anchor: middle }}
.down {{ stroke: #444; stroke-width: 2; fill: none; marker-end: url(#a) }}
.arc {{ stroke: #2f6db3; fill: none; stroke-width: 1.4; stroke-opacity: 0.8; marker-end: url(#r) }}
</style>
</defs>
<rect width="{WIDTH}" height="{ground + 130:g}" style="stroke: none" fill="#fff"/>
{body}
</svg>
"""


if __name__ == "__main__":
    PICTURE.write_text(picture())
