"""Animated picture of a matrix product in the systolic array, drawn from the waveform of a run.

Record the tensor engine alone at full depth with Icarus, then draw:

    make sim TEST=matmul TARGET=engine PRESET=tiny SIM=icarus WAVES=1 DEPTH=0 M=4 K=4 N=4
    .venv/bin/python -m neuroncore_rtl.run.view.array_motion sim_build/waves/NAME.vcd array.svg

Every number in the picture is a value of the waveform. CSS moves the picture, without JavaScript.
"""

import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from neuroncore_rtl.hdl.tensor.array import row_skew
from neuroncore_rtl.hdl.tensor.engine import TensorEngine
from neuroncore_rtl.run.settings import UsageError
from neuroncore_rtl.run.view.diagram import svg_file, svg_text
from neuroncore_rtl.run.view.samples import recorded_names, sample_cycles
from neuroncore_rtl.run.view.wave_numbers import NUMBERS
from neuroncore_rtl.spec.config import LOAD_COLUMNS, PRESETS, Config

__all__ = ["Motion", "read_motion", "write_motion"]

MOST = 8
"""Rows and columns of the largest array that a picture shows."""

MOST_CYCLES = 120
"""Cycles of the longest animation."""

SECONDS = 1.4
"""Duration of a cycle in the animation."""

_CLOCK = "tensor.clk"
_TILE = re.compile(r"tensor\.engine\.datapath\.array\.block_0_0\.tile_(\d+)_(\d+)\.active(\d+)")
_COLUMN = "tensor.engine.mover.column_valid"
_OFFERED = "tensor.valid"
_CYCLES = "tensor.cycles"

_DIGITS = 5
"""Characters of a number in the picture."""

_KEPT = 8
"""Finished sums that are shown below each column."""

_AHEAD = 7
"""Number of cycles, the current and the next ones, whose operands are shown left of the array."""

_SLOT, _ROW, _SUM = 46, 84, 22
"""Pixels: width of an operand left of the array, height of a row, height of a sum below the array."""

_TOP, _LEFT = 112, 16
"""Pixels above and left of the picture's content."""


@dataclass(frozen=True)
class Element:
    """One processing element in one cycle; each number is its decimal text; None: no number.

    Arguments:
        shadow: the next weight, which waits for its first operand.
        operand: the moving operand; "absent" if the element passes its sum unchanged.
        total: the partial sum that it sends down: the sum from above plus weight * operand.
    """

    weight: str | None
    shadow: str | None
    operand: str | None
    total: str | None


@dataclass(frozen=True)
class Frame:
    """The array in one cycle; the first instruction is offered in cycle 1. Elements are by row and column.

    Arguments:
        entering: for each row, the operands that enter at its left-hand side in this cycle and in the next ones.
        leaving: for each column, the sums that it has sent out at the bottom, the latest first.
    """

    cycle: int
    elements: list[list[Element]]
    entering: list[list[str | None]]
    leaving: list[list[str | None]]

    @property
    def working(self) -> int:
        return sum(element.operand is not None for row in self.elements for element in row)


@dataclass(frozen=True)
class Motion:
    """A product in the array; `cycles` are from the first offered instruction to the last sum in PSUM."""

    rows: int
    columns: int
    cycles: int
    frames: list[Frame]


def read_motion(vcd: Path, config: Config) -> Motion:
    """Return the product in a waveform of the tensor engine alone.

    Raises:
        UsageError: if the waveform lacks the processing elements, or if the array or the run is too large to be shown.
    """
    rows, columns = config.rows, config.columns
    if rows > MOST or columns > MOST:
        raise UsageError(f"the array of the picture must have at most {MOST} x {MOST} elements, not {rows} x {columns}")
    places = {tuple(map(int, found.groups())) for found in map(_TILE.fullmatch, recorded_names(vcd)) if found}
    if {(row, LOAD_COLUMNS * tile + lane) for row, tile, lane in places} != {
        (row, column) for row in range(rows) for column in range(columns)
    }:
        raise UsageError(
            f"{vcd} must be a waveform of the tensor engine alone with all {rows} x {columns} processing elements: "
            "TARGET=engine SIM=icarus WAVES=1 DEPTH=0"
        )
    return _Reader(vcd, config).motion()


class _Reader:
    def __init__(self, vcd: Path, config: Config):
        self.config = config
        tiles = range(-(-config.columns // LOAD_COLUMNS))
        names = [_COLUMN, _OFFERED, _CYCLES]
        for row in range(config.rows):
            names += [_at(row, tile, name) for tile in tiles for name in ("moving", "moving_out", "load", "swap")]
            for column in range(config.columns):
                tile, lane = divmod(column, LOAD_COLUMNS)
                names += [_at(row, tile, f"{name}{lane}") for name in ("active", "shadow", "out__")]
        self.values: Mapping[str, list[int | None]] = sample_cycles(vcd, _CLOCK, names)
        self.length = len(self.values[_COLUMN])

    def value(self, cycle: int, row: int, tile: int, name: str, form: str) -> str | None:
        word = self.values[_at(row, tile, name)][cycle]
        return None if word is None else NUMBERS[form](word)

    def arrives(self, cycle: int, row: int, tile: int, later: int = 0) -> bool:
        """Return whether an operand was at the input of a tile `later` cycles before a cycle."""
        issued = cycle - later - TensorEngine.input_latency(self.config) - row_skew(self.config, row) - tile
        return 0 <= issued < self.length and self.values[_COLUMN][issued] == 1

    def motion(self) -> Motion:
        config, latency = self.config, self.config.mac_latency
        first_offer = self.values[_OFFERED].index(1)
        last_row, last_tile = config.rows - 1, -(-config.columns // LOAD_COLUMNS) - 1
        first = self.values[_at(0, 0, "load")].index(1)
        last = max(cycle for cycle in range(self.length) if self.arrives(cycle, last_row, last_tile, latency)) + 1
        if last - first >= MOST_CYCLES:
            raise UsageError(f"the product must take at most {MOST_CYCLES} cycles to be shown, not {last - first + 1}")
        loaded, swapped = self._since("load"), self._since("swap")
        frames, left = [], [[] for _ in range(config.columns)]
        for cycle in range(first, last + 1):
            elements = [
                [self._element(cycle, row, column, loaded, swapped) for column in range(config.columns)]
                for row in range(config.rows)
            ]
            entering = [[self._entering(cycle + ahead, row) for ahead in range(_AHEAD)] for row in range(config.rows)]
            frames.append(Frame(cycle - first_offer + 1, elements, entering, [sums[:_KEPT] for sums in left]))
            for sums, element in zip(left, elements[-1], strict=True):
                if element.total is not None:
                    sums.insert(0, element.total)
        return Motion(config.rows, config.columns, self.values[_CYCLES][-1] or 0, frames)

    def _since(self, event: str) -> dict[tuple[int, int], list[bool]]:
        found = {}
        for row in range(self.config.rows):
            for tile in range(-(-self.config.columns // LOAD_COLUMNS)):
                seen, states = False, []
                for value in self.values[_at(row, tile, event)]:
                    states.append(seen)
                    seen |= value == 1
                found[row, tile] = states
        return found

    def _entering(self, cycle: int, row: int) -> str | None:
        return self.value(cycle, row, 0, "moving", "operand") if self.arrives(cycle, row, 0) else None

    def _element(self, cycle: int, row: int, column: int, loaded, swapped) -> Element:
        tile, lane = divmod(column, LOAD_COLUMNS)
        value = partial(self.value, cycle, row, tile)
        operand = self.arrives(cycle, row, tile, 1)
        total = self.arrives(cycle, row, tile, self.config.mac_latency)
        weight = value(f"active{lane}", "operand") if swapped[row, tile][cycle] else None
        shadow = value(f"shadow{lane}", "operand") if loaded[row, tile][cycle] else None
        return Element(
            weight=weight,
            shadow=None if shadow == weight else shadow,
            operand=value("moving_out", "operand") if operand else None,
            total=value(f"out__{lane}", "fp32") if total else None,
        )


def _at(row: int, tile: int, signal: str) -> str:
    return f"tensor.engine.datapath.array.block_0_0.tile_{row}_{tile}.{signal}"


def write_motion(
    vcd: Path, config: Config, target: Path, still: Path | None = None, cycle: int | None = None
) -> Motion:
    """Draw the product of a waveform as an animated SVG; return it.

    `still` is the file of a still picture of one cycle, by default the one in which most elements multiply.
    """
    motion = read_motion(vcd, config)
    busiest = max(motion.frames, key=lambda frame: frame.working)
    chosen = busiest if cycle is None else next((frame for frame in motion.frames if frame.cycle == cycle), None)
    if chosen is None:
        raise UsageError(
            f"cycle must be one from {motion.frames[0].cycle} to {motion.frames[-1].cycle}, in which the array is "
            f"shown, not {cycle}"
        )
    target.write_text(_svg(motion, motion.frames, chosen))
    if still is not None:
        still.write_text(_svg(motion, [chosen], chosen))
    return motion


def _svg(motion: Motion, frames: list[Frame], chosen: Frame) -> str:
    cell = 110 if motion.columns <= 4 else 84
    array = _LEFT + _AHEAD * _SLOT + 26
    shown = max(len(sums) for sums in motion.frames[-1].leaving)
    bottom = _TOP + motion.rows * _ROW + 26
    width, height = max(array + motion.columns * cell + _LEFT, 880), bottom + shown * _SUM + 62
    period = SECONDS * len(frames)
    style = (
        "rect{stroke-width:1.5}text{text-anchor:middle;fill:#111;font-size:13px}"
        ".name{font-size:20px;font-weight:bold;text-anchor:start}.small{font-size:13px;fill:#444;text-anchor:start}"
        ".mid{font-size:13px;fill:#444}.sum{font-weight:bold}.later{fill:#777;font-size:12px}"
    )
    if len(frames) > 1:
        style += (
            f"@keyframes show{{0%{{visibility:visible}}{100 / len(frames):.4f}%,100%{{visibility:hidden}}}}"
            f".frame{{visibility:hidden;animation:show {period:g}s steps(1) infinite}}"
            "@media(prefers-reduced-motion:reduce){.frame{animation:none!important}.chosen{visibility:visible}}"
        )
    parts = []
    for number, frame in enumerate(frames):
        moment = f' style="animation-delay:{SECONDS * number:g}s"' if len(frames) > 1 else ""
        kind = "frame chosen" if frame is chosen else "frame"
        parts += [f'<g class="{kind}" id="cycle{frame.cycle}"{moment}>', *_frame(frame, motion, cell, array), "</g>"]
    title = "A matrix product in the systolic array, cycle by cycle"
    return svg_file(width, height, title, style, [*_surroundings(motion, cell, array, bottom, height), *parts])


def _surroundings(motion: Motion, cell: int, array: int, bottom: int, height: int) -> Iterable[str]:
    yield svg_text(_LEFT, 56, "sum = sum sent by the element above + w · x", "small")
    yield svg_text(_LEFT, _TOP - 16, "operands of the next cycles", "small")
    for row in range(motion.rows):
        y = _TOP + row * _ROW + _ROW / 2 - 4
        yield f'<path d="M{array - 22} {y:g}h14" stroke="#444" stroke-width="2"/>'
        yield f'<path d="M{array - 10} {y - 5:g}l9 5l-9 5z" fill="#444"/>'
    for column in range(motion.columns):
        x = array + column * cell + cell / 2 - 3
        yield svg_text(x, _TOP - 16, f"column {column}", "mid")
        yield f'<path d="M{x:g} {bottom - 28}v12" stroke="#444" stroke-width="2"/>'
        yield f'<path d="M{x - 5:g} {bottom - 18}l5 9l5 -9z" fill="#444"/>'
    yield svg_text(_LEFT, bottom + 16, "finished sums, the latest above", "small")
    x, y = _LEFT, height - 16
    for kind, text in (
        ("plain", "no weight yet"),
        ("memory", "weight ready"),
        ("engine", "multiplies in this cycle"),
        ("control", "absent operand: sum passes"),
    ):
        yield f'<rect class="{kind}" x="{x}" y="{y - 12}" width="16" height="14"/>'
        yield svg_text(x + 22, y, text, "small")
        x += 48 + 7 * len(text)


def _frame(frame: Frame, motion: Motion, cell: int, array: int) -> Iterable[str]:
    count = motion.rows * motion.columns
    yield svg_text(_LEFT, 36, f"cycle {frame.cycle} of {motion.cycles}", "name")
    yield svg_text(_LEFT + 190, 36, f"{frame.working} of {count} elements multiply", "small")
    for row, operands in enumerate(frame.entering):
        for ahead, operand in enumerate(operands):
            if operand is not None:
                x, y = array - 26 - (ahead + 1) * _SLOT, _TOP + row * _ROW + _ROW / 2 - 16
                yield f'<rect class="memory" x="{x}" y="{y:g}" width="{_SLOT - 4}" height="24" rx="4"/>'
                yield svg_text(x + _SLOT / 2 - 2, y + 17, _short(operand))
    for row, elements in enumerate(frame.elements):
        for column, element in enumerate(elements):
            yield from _cell(element, array + column * cell, _TOP + row * _ROW, cell)
    for column, sums in enumerate(frame.leaving):
        for place, total in enumerate(sums):
            x, y = array + column * cell + cell / 2 - 3, _TOP + motion.rows * _ROW + 42 + place * _SUM
            yield svg_text(x, y, _short(total or ""), "sum")


def _cell(element: Element, x: int, y: int, cell: int) -> Iterable[str]:
    kind = "plain" if element.weight is None and element.shadow is None else "memory"
    if element.operand is not None:
        kind = "control" if "absent" in (element.operand, element.weight) else "engine"
    yield f'<rect class="{kind}" x="{x}" y="{y}" width="{cell - 6}" height="{_ROW - 8}" rx="5"/>'
    middle = x + cell / 2 - 3
    if element.weight is not None:
        yield svg_text(middle, y + 18, f"w {_short(element.weight)}", "weight")
    if element.shadow is not None:
        yield svg_text(middle, y + 69, f"next w {_short(element.shadow)}", "later")
    if element.operand is not None:
        yield svg_text(middle, y + 36, f"x {_short(element.operand)}", "operand")
    if element.total is not None:
        yield svg_text(middle, y + 54, f"sum {_short(element.total)}", "sum")


def _short(number: str) -> str:
    """Return a number rounded to `_DIGITS` characters, as far as its size permits."""
    if number in ("absent", "nan", "inf", "-inf"):
        return number.replace("absent", "–")
    texts = [number, *(f"{float(number):.{places}f}" for places in (3, 2, 1, 0)), f"{float(number):.0e}"]
    return next((text for text in texts if len(text) <= _DIGITS), texts[-1])


def main(words: list[str]) -> int:
    """Draw `VCD` into `TARGET`; the third word names the preset of the run, default tiny."""
    if len(words) not in (2, 3) or (len(words) == 3 and words[2] not in PRESETS):
        print(f"usage: array_motion VCD TARGET [{'|'.join(PRESETS)}]", file=sys.stderr)
        return 2
    try:
        write_motion(Path(words[0]), PRESETS[words[2] if len(words) == 3 else "tiny"], Path(words[1]))
    except UsageError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
