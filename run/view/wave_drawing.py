"""Drawings of waveforms as SVG."""

import enum
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path

from neuroncore_rtl.run.view.diagram import KINDS, svg_file, svg_text
from neuroncore_rtl.run.view.wave_groups import Trace
from neuroncore_rtl.run.view.wave_numbers import NUMBERS, sample_cycles

__all__ = ["draw_waves"]

_WIDTH, _NAMES, _ROW, _HIGH = 1000, 180, 24, 15
"""Pixels: width of the drawing, width of the names, height of a line, height of a signal."""

_CHARACTER = 6.6
"""Pixels of a character of a value."""

_LABELS = 44
"""Least pixels from one number of a cycle to the next."""


def draw_waves(
    vcd: Path, top: str, groups: Mapping[str, Sequence[Trace]], cycles: range | None = None, origin: str = ""
) -> str:
    """Return a drawing of signals: a line for one bit, a box per value for a word.

    Arguments:
        vcd: the waveform.
        top: name of the harness, in which `clk` is.
        groups: the signals of each group, from top to bottom; each group has a heading.
        cycles: the cycles that are drawn; None: all from 1 on. ValueError for others than those of the waveform.
        origin: one-bit signal; the first cycle in which it is 1 has the number 1. Without it that is the first cycle.
    """
    lines = [trace for traces in groups.values() for trace in traces]
    names = [trace.signal for trace in lines] + ([origin] if origin else [])
    values = sample_cycles(vcd, f"{top}.clk", [f"{top}.{name}" for name in names])
    length = len(next(iter(values.values())))
    first = values[f"{top}.{origin}"].index(1) if origin else 0
    shown = cycles if cycles is not None else range(1, length - first + 1)
    if not shown or shown.step != 1 or shown[0] < 1 - first or shown[-1] > length - first:
        raise ValueError(f"cycles must be a range within {1 - first} to {length - first}, not {shown}")
    part = slice(first + shown.start - 1, first + shown.stop - 1)
    height = 34 + _ROW * (len(lines) + len(groups)) + 8
    pitch = (_WIDTH - _NAMES - 14) / len(shown)
    parts, y = list(_axis(shown, pitch, height)), 34
    for group, traces in groups.items():
        parts.append(svg_text(10, y + 16, group, "name"))
        y += _ROW
        for trace in traces:
            parts.append(svg_text(20, y + 12, trace.alias))
            parts += _signal(values[f"{top}.{trace.signal}"][part], trace.format, y, pitch)
            y += _ROW
    fill, border = KINDS["memory"]
    style = (
        f".bit{{fill:none;stroke:{KINDS['control'][1]};stroke-width:1.6}}.word{{fill:{fill};stroke:{border}}}"
        ".unknown{fill:#e4e4e4;stroke:none}.grid{stroke:#ddd}text{font-size:12px;fill:#333}"
        ".name{font-weight:bold;fill:#111}.mid{text-anchor:middle;font-size:11px}"
    )
    title = f"Signals of {top}, cycles {shown[0]} to {shown[-1]}"
    return svg_file(_WIDTH, height, title, style, parts)


def _axis(cycles: range, pitch: float, height: int) -> Iterator[str]:
    sizes = (size * 10**power for power in range(7) for size in (1, 2, 5))
    step = next(size for size in sizes if size * pitch >= min(_LABELS, len(cycles) * pitch))
    yield svg_text(10, 20, "cycle")
    for number, cycle in enumerate(cycles):
        if cycle % step == 0 or step == 1:
            x = _NAMES + number * pitch
            yield f'<path class="grid" d="M{x:.4g} 26V{height - 4}"/>'
            yield svg_text(x + min(pitch, _LABELS) / 2, 20, str(cycle), "mid")


def _signal(values: list[int | None], form: str | type[enum.Enum], y: int, pitch: float) -> Iterator[str]:
    """Draw the values of a signal; equal ones become one line or box."""
    cycle, path = 0, ""
    for value, same in groupby(values):
        length = len(list(same))
        left, right = _NAMES + cycle * pitch, _NAMES + (cycle + length) * pitch
        cycle += length
        box = f'x="{left:.5g}" y="{y}" width="{right - left:.5g}" height="{_HIGH}"'
        if value is None:
            yield f'<rect class="unknown" {box}/>'
            path += f"M{right:.5g} {y + _HIGH}" if path else ""
        elif form == "bin":
            level = y if value else y + _HIGH
            path += f"{'V' if path else f'M{left:.5g} '}{level}H{right:.5g}"
        else:
            text = _word(form)(value)
            yield f'<rect class="word" rx="3" {box}/>'
            if len(text) * _CHARACTER <= right - left:
                yield svg_text((left + right) / 2, y + 12, text, "mid")
    if path:
        yield f'<path class="bit" d="{path}"/>'


def _word(form: str | type[enum.Enum]) -> Callable[[int], str]:
    if isinstance(form, str):
        return {"hex": "{:x}".format, "dec": str, **NUMBERS}[form]
    names = {member.value: member.name for member in form}
    return lambda value: names.get(value, f"{value:x}")
