"""Animated picture of a matrix product in the systolic array, drawn from a run of the tensor engine.

Every number in the picture is the value of a signal. CSS moves the picture, without JavaScript.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, product
from operator import or_

from neuroncore_rtl.hdl.arith.operand import SIGNIFICAND_BITS
from neuroncore_rtl.hdl.tensor.array import row_skew, tile_count
from neuroncore_rtl.hdl.tensor.engine import TensorEngine
from neuroncore_rtl.run.settings import UsageError
from neuroncore_rtl.run.view.diagram import svg_file, svg_text
from neuroncore_rtl.run.view.wave_numbers import NUMBERS
from neuroncore_rtl.spec.config import LOAD_COLUMNS, Config

__all__ = [
    "SECONDS",
    "Element",
    "Frame",
    "Motion",
    "array_signals",
    "check_array",
    "draw_motion",
    "is_shown",
    "read_motion",
]

MOST = 8
"""Rows and columns of the largest array that a picture shows."""

MOST_CYCLES = 120
"""Cycles of the longest animation."""

SECONDS = 1.4
"""Duration of a cycle in the animation."""

_COLUMN = "mover.column_valid"

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

    @property
    def busiest(self) -> Frame:
        """The first frame in which most elements multiply."""
        return max(self.frames, key=lambda frame: frame.working)


def is_shown(config: Config) -> bool:
    """Return whether an array is small enough for a picture."""
    return max(config.rows, config.columns) <= MOST


def check_array(config: Config) -> None:
    """Raise UsageError if an array is too large for a picture."""
    if not is_shown(config):
        raise UsageError(
            f"the array of a picture must have at most {MOST} x {MOST} elements, not {config.rows} x {config.columns}: "
            "choose PRESET=tiny, or ROWS and COLUMNS"
        )


def array_signals(config: Config) -> Iterator[str]:
    """Yield the signals of a tensor engine from which its picture is drawn, by their paths below the engine."""
    yield _COLUMN
    for row in range(config.rows):
        for tile in range(tile_count(config.columns)):
            yield from (_at(row, tile, name) for name in ("moving", "moving_out", "load", "swap"))
        for column in range(config.columns):
            tile, lane = divmod(column, LOAD_COLUMNS)
            yield from (_at(row, tile, f"{name}{lane}") for name in ("active", "shadow", "out__"))


def read_motion(values: Mapping[str, Sequence[int]], cycles: int, config: Config) -> Motion:
    """Return the product in a run of the tensor engine; UsageError if the run is too long to be shown.

    `values` are those of `array_signals` in each cycle, from the cycle on in which the first instruction is offered;
    `cycles` is the number of cycles until the last sum is in PSUM.
    """
    return _Reader(values, config).motion(cycles)


class _Reader:
    def __init__(self, values: Mapping[str, Sequence[int]], config: Config):
        self.values, self.config = values, config
        self.length = len(values[_COLUMN])

    def value(self, cycle: int, row: int, tile: int, name: str, form: str) -> str:
        word = self.values[_at(row, tile, name)][cycle]
        if form == "operand":  # NUMBERS reads operands of the full width; a narrower significand lacks the last bits
            word <<= SIGNIFICAND_BITS - self.config.significand_bits
        return NUMBERS[form](word)

    def arrives(self, cycle: int, row: int, tile: int, later: int = 0) -> bool:
        """Return whether an operand was at the input of a tile `later` cycles before a cycle."""
        issued = cycle - later - TensorEngine.input_latency(self.config) - row_skew(self.config, row) - tile
        return 0 <= issued < self.length and self.values[_COLUMN][issued] == 1

    def motion(self, cycles: int) -> Motion:
        config, latency = self.config, self.config.mac_latency
        last_row, last_tile = config.rows - 1, tile_count(config.columns) - 1
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
            frames.append(Frame(cycle + 1, elements, entering, [sums[:_KEPT] for sums in left]))
            for sums, element in zip(left, elements[-1], strict=True):
                if element.total is not None:
                    sums.insert(0, element.total)
        return Motion(config.rows, config.columns, cycles, frames)

    def _since(self, event: str) -> dict[tuple[int, int], list[bool]]:
        """Return for each tile whether an event has happened before each cycle."""
        tiles = product(range(self.config.rows), range(tile_count(self.config.columns)))
        return {at: [*accumulate(map(bool, self.values[_at(*at, event)]), or_, initial=False)] for at in tiles}

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
    return f"datapath.array.block_0_0.tile_{row}_{tile}.{signal}"


def draw_motion(motion: Motion, frame: Frame | None = None) -> str:
    """Return an SVG of a product: animated, or a still picture of one frame."""
    frames = motion.frames if frame is None else [frame]
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
    if frame is None:
        style += (
            f"@keyframes show{{0%{{visibility:visible}}{100 / len(frames):.4f}%,100%{{visibility:hidden}}}}"
            f".frame{{visibility:hidden;animation:show {period:g}s steps(1) infinite}}"
            "@media(prefers-reduced-motion:reduce){.frame{animation:none!important}.chosen{visibility:visible}}"
        )
    parts = []
    for number, one in enumerate(frames):
        moment = f' style="animation-delay:{SECONDS * number:g}s"' if frame is None else ""
        kind = "frame chosen" if one is (frame or motion.busiest) else "frame"
        parts += [f'<g class="{kind}" id="cycle{one.cycle}"{moment}>', *_frame(one, motion, cell, array), "</g>"]
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
