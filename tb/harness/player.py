"""Runs a unit on any number of cases in bulk: files in, files out, Python waits for one edge.

A *playable* unit is a component with the ports valid, word (all inputs in one word), result (32 bits) and result_valid;
`tb/harness/player.v` streams a file of words through it, one per cycle, or as often as an iterative unit can start.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
from amaranth import Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl import verilog
from neuroncore_rtl.tb.harness.harness import run_harness
from neuroncore_rtl.tb.sim import simulation
from neuroncore_rtl.tb.sim.report import progress

__all__ = ["Playable", "pack", "play", "player_design"]

_TEMPLATE = Path(__file__).with_name("player.v")
_NAME = "player"

_CHUNK = 1 << 18
"""Cases that are packed at a time; bounds the memory that this takes."""

_DIGITS = np.array([f"{byte:02x}".encode() for byte in range(256)]).view(np.uint8).reshape(256, 2)
"""The two characters of every byte."""

_VALUES = np.full(256, 16, np.uint8)
"""The value of every hexadecimal digit's character; 16 marks a character that is none (x and z of four-state logic)."""
_VALUES[np.frombuffer(b"0123456789abcdef", np.uint8)] = np.arange(16)


class Playable(wiring.Component):
    """Base of playable units: keeps `valid` in step with a pipeline of `latency` cycles.

    Arguments:
        layout: fields of `word`, each at most 32 bits wide; `pack` takes one array for each, by name.
        latency: cycles from word to result.
        interval: cycles from one case to the next; between them `word` holds something else.

    Ports:
        valid, word: a case. result_valid, result: its outcome, `latency` cycles later.
    """

    def __init__(self, layout: data.StructLayout, latency: int, interval: int = 1):
        self.layout = layout
        self.latency = latency
        self.interval = interval
        super().__init__({"valid": In(1), "word": In(layout), "result": Out(32), "result_valid": Out(1)})

    def delay_valid(self, m) -> None:
        """Add the registers that carry `valid` to `result_valid`."""
        valid = self.valid
        for stage in range(self.latency):
            late = Signal(name=f"valid_{stage}")
            m.d.sync += late.eq(valid)
            valid = late
        m.d.comb += self.result_valid.eq(valid)


def pack(layout: data.StructLayout, **fields: np.ndarray) -> np.ndarray:
    """Return the words of many cases as bytes, most significant first: uint8 of shape [cases, bytes of a word].

    Arguments:
        layout: of the word.
        fields: one uint32 array per field of the layout; values that are too wide are an error.
    """
    if set(fields) != {name for name, _ in layout}:
        raise ValueError(f"fields must be {', '.join(name for name, _ in layout)}, not {', '.join(fields)}")
    columns = []
    for name, field in layout:
        values = np.ascontiguousarray(fields[name], dtype="<u4")
        if field.width < 32 and values.size and int(values.max()) >> field.width:
            raise ValueError(f"{name} must fit {field.width} bits, not {int(values.max()):#x}")
        bits = np.unpackbits(values.view(np.uint8).reshape(-1, 4), axis=1, bitorder="little")
        columns.append(bits[:, : field.width])
    return np.packbits(np.concatenate(columns, axis=1), axis=1, bitorder="little")[:, ::-1]


def _as_lines(words: np.ndarray) -> bytes:
    """Return words as text, a hexadecimal number a line."""
    text = np.full((len(words), 2 * words.shape[1] + 1), ord("\n"), np.uint8)
    text[:, :-1] = _DIGITS[words].reshape(len(words), -1)
    return text.tobytes()


def player_design(unit: Playable, mutate: Callable[[str], str] | None = None) -> simulation.Design:
    """Return the design that plays cases through `unit`.

    Arguments:
        unit: what to test.
        mutate: a function from the unit's Verilog to another, to see that a bench notices a broken unit.
    """
    name = type(unit).__name__
    text = verilog.convert(unit, name, None)
    if mutate is not None:
        text = mutate(text)
    width = unit.layout.size
    defines = f"`define UNIT {name}\n`define WIDTH {width}\n`define INTERVAL {unit.interval}\n"
    verilog_text = f"{defines}{_TEMPLATE.read_text()}\n{text}"
    return simulation.Design(_NAME, verilog_text, public=("done",), clock="clk")


def play(
    design: simulation.Design,
    layout: data.StructLayout,
    fields: dict[str, np.ndarray],
    *,
    sim: str,
    bubbles: bool = False,
    interval: int = 1,
) -> tuple[np.ndarray, list[int]]:
    """Run cases through a design made by `player_design`.

    Arguments:
        design: the player with its unit.
        layout: of the unit's word.
        fields: the cases, one array per field of the layout (see `pack`).
        sim: one of `tb.sim.simulation.SIMULATORS`.
        bubbles: whether to leave random idle cycles between the cases.
        interval: of the unit; bounds the time of the run.

    Returns:
        The results in order, as uint32, and the list of positions at which the simulator wrote a word with unknown
        (x or z) bits; those read as 0. There may be more or fewer results than cases: the caller must count.
    """
    built = simulation.build(design, sim)
    with simulation.run_directory(_NAME) as directory:
        cases, results = directory / "cases.hex", directory / "results.hex"
        count = len(next(iter(fields.values())))
        with cases.open("wb") as file:
            for start in range(0, count, _CHUNK):
                chunk = {name: values[start : start + _CHUNK] for name, values in fields.items()}
                file.write(_as_lines(pack(layout, **chunk)))
        plusargs = [f"+cases={cases.resolve()}", f"+results={results.resolve()}", *(["+bubbles"] if bubbles else [])]
        with progress(f"{sim}: playing {count:,} cases"):
            run_harness(built, directory, plusargs=plusargs, limit=(1 + interval) * count + 1000)
        digits = _VALUES[np.frombuffer(results.read_bytes(), np.uint8).reshape(-1, 9)[:, :8]]
    unknown = (digits > 15).any(axis=1)
    digits[unknown] = 0
    pairs = digits[:, 0::2] << 4 | digits[:, 1::2]
    return np.ascontiguousarray(pairs).view(">u4").ravel().astype(np.uint32), np.flatnonzero(unknown).tolist()
