"""Block diagrams as SVG, in the style of all pictures of this project."""

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape

__all__ = ["KINDS", "Box", "Diagram", "svg_file", "svg_text"]

FONT = "Helvetica, Arial, DejaVu Sans, sans-serif"

KINDS = {
    "memory": ("#e6f0fa", "#2f6db3"),
    "engine": ("#fdf0df", "#c77d1b"),
    "control": ("#eaf4e5", "#4f8a3c"),
    "link": ("#f2eafa", "#7c4bb0"),
    "plain": ("#ffffff", "#999999"),
}
"""Fill and border colour of each kind of box."""

_ARROWS = {"data": ("#444444", 2), "control": ("#4f8a3c", 1.6)}
"""Colour and width of each kind of arrow."""

_GAP = 4
"""Pixels between an arrow and its box."""

_LINE = 16


@dataclass(frozen=True)
class Box:
    """Rectangle of a diagram, in pixels; a point on a side is given by its fraction."""

    x: float
    y: float
    width: float
    height: float

    def left(self, at: float = 0.5) -> tuple[float, float]:
        return self.x - _GAP, self.y + at * self.height

    def right(self, at: float = 0.5) -> tuple[float, float]:
        return self.x + self.width + _GAP, self.y + at * self.height

    def top(self, at: float = 0.5) -> tuple[float, float]:
        return self.x + at * self.width, self.y - _GAP

    def bottom(self, at: float = 0.5) -> tuple[float, float]:
        return self.x + at * self.width, self.y + self.height + _GAP


class Diagram:
    """Picture of boxes and arrows, with a title for screen readers."""

    def __init__(self, width: int, height: int, title: str):
        self._size = width, height
        self._title = title
        self._parts: list[str] = []

    def box(self, kind: str, x: float, y: float, width: float, height: float, name: str, *lines: str) -> Box:
        """Draw a box with a name in bold and lines of small text; return it."""
        self._parts.append(f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="5"/>')
        base = y + height / 2 + 5 - _LINE * len(lines) / 2
        if name:
            self.text(x + width / 2, base, name, "name mid")
        for number, line in enumerate(lines):
            self.text(x + width / 2, base + (number + bool(name)) * _LINE, line, "small mid")
        return Box(x, y, width, height)

    def frame(self, x: float, y: float, width: float, height: float, name: str) -> Box:
        """Draw a dashed frame around other boxes; return it."""
        size = f'x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"'
        self._parts.append(f'<rect {size} rx="10" fill="#fafafa" stroke="#999" stroke-dasharray="6 4"/>')
        self.text(x + width - 10, y + height - 10, name, "name end")
        return Box(x, y, width, height)

    def arrow(self, *points: tuple[float, float], kind: str = "data", label: str = "", both: bool = False) -> None:
        """Draw an arrow along points, with a corner where two are not aligned; `label`: above the first segment."""
        (x, y), *others = points
        path, lines = f"M{x:g} {y:g}", []
        for x1, y1 in others:
            if x1 != x and y1 != y:
                path += f"H{x1:g}"
                lines.append((x, y, x1, y))
            path += f"L{x1:g} {y1:g}"
            lines.append((x, y, x1, y1))
            x, y = x1, y1
        start = f' marker-start="url(#{kind})"' if both else ""
        self._parts.append(f'<path class="{kind}-arrow" d="{path}"{start} marker-end="url(#{kind})"/>')
        if label:
            x0, y0, x1, y1 = lines[0]
            if y0 == y1:
                self.text((x0 + x1) / 2, y0 - 6, label, "small mid")
            else:
                self.text(x0 + 6, (y0 + y1) / 2 + 4, label)

    def text(self, x: float, y: float, text: str, style: str = "small") -> None:
        self._parts.append(svg_text(x, y, text, style))

    def legend(self, x: float, y: float, *kinds: str) -> None:
        """Draw the legend in a row."""
        for kind, text in (("data", "data"), ("control", "instructions and signals")):
            self.arrow((x, y), (x + 34, y), kind=kind)
            self.text(x + 42, y + 4, text)
            x += 58 + 7 * len(text)
        for kind in kinds:
            self._parts.append(f'<rect class="{kind}" x="{x:g}" y="{y - 8:g}" width="16" height="14"/>')
            self.text(x + 22, y + 4, kind)
            x += 40 + 8 * len(kind)

    def svg(self) -> str:
        shape = 'viewBox="0 0 10 10" refX="9" refY="5" markerWidth="9" markerHeight="9" markerUnits="userSpaceOnUse"'
        marks = "".join(
            f'<marker id="{kind}" {shape} orient="auto-start-reverse"><path d="M0 0L10 5L0 10z" fill="{c}"/></marker>'
            for kind, (c, _) in _ARROWS.items()
        )
        style = "".join(f".{k}-arrow{{stroke:{c};stroke-width:{w};fill:none}}" for k, (c, w) in _ARROWS.items())
        style += "rect{stroke-width:1.5}.name{font-size:16px;font-weight:bold;fill:#111}"
        style += ".small{font-size:12px;fill:#444}.mid{text-anchor:middle}.end{text-anchor:end}"
        return svg_file(*self._size, self._title, style, self._parts, marks)


def svg_file(width: float, height: float, title: str, style: str, parts: Iterable[str], definitions: str = "") -> str:
    """Return an SVG file with a white background and the colours of `KINDS` as classes."""
    colours = "".join(f".{kind}{{fill:{fill};stroke:{border}}}" for kind, (fill, border) in KINDS.items())
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="{FONT}">',
            f"<title>{escape(title)}</title>",
            f"<defs>{definitions}<style>{colours}{style}</style></defs>",
            f'<rect width="{width}" height="{height}" fill="#fff" stroke="none"/>',
            *parts,
            "</svg>\n",
        ]
    )


def svg_text(x: float, y: float, text: str, style: str = "") -> str:
    """Return a line of text; style: its classes."""
    kind = f' class="{style}"' if style else ""
    return f'<text{kind} x="{round(x, 1):g}" y="{round(y, 1):g}">{escape(text)}</text>'
