"""Device of a small unit: streams test cases through it.

`run/harness/player.v` feeds a `Playable` a file of words, one per cycle or per interval of an iterative unit.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from amaranth import Module, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.verilog import text as verilog
from neuroncore_rtl.run.harness.outcome import Ending, Outcome
from neuroncore_rtl.run.harness.verilog_text import harness, plusargs
from neuroncore_rtl.run.sim import simulation

__all__ = ["Playable", "PlayedUnit", "PlayerDevice", "PlayerWork", "pack_inputs"]

_CHUNK = 1 << 18
"""Cases that are packed at a time, to limit memory."""

_VALUES = np.full(256, 16, np.uint8)
"""Value of each character as a hexadecimal digit; 16 for others (x and z)."""
_VALUES[np.frombuffer(b"0123456789abcdef", np.uint8)] = np.arange(16)


class Playable(wiring.Component):
    """Base of units that a player feeds with cases; delays `valid` by the `latency` of the unit.

    Arguments:
        layout: fields of `word`, each at most 32 bits wide.
        latency: cycles from word to result.
        interval: cycles from one case to the next; `word` may change before the next case begins.

    Ports:
        valid: set when `word` is a case.
        word: all inputs.
        result: 32 bits.
        result_valid: set when `result` is valid.
    """

    valid: Any
    word: Any
    result: Any
    result_valid: Any

    def __init__(self, layout: data.StructLayout, latency: int, interval: int = 1):
        self.layout = layout
        self.latency = latency
        self.interval = interval
        super().__init__({"valid": In(1), "word": In(layout), "result": Out(32), "result_valid": Out(1)})

    def delay_valid(self, m) -> None:
        valid: Any = self.valid
        for stage in range(self.latency):
            late = Signal(name=f"valid_{stage}")
            m.d.sync += late.eq(valid)
            valid = late
        m.d.comb += self.result_valid.eq(valid)


class PlayedUnit(Playable):
    """A component with its `inputs` in one word, in this order, and the `output` of this name.

    Arguments:
        unit: a pipeline; or, if it has an `INTERVAL`, an iterative unit with a port `start`, one result per `INTERVAL`
            cycles, and the latency `LATENCY`.
        latency: latency in cycles; None for the unit's attribute `latency`.
        late: cycles by which inputs are later than the others, by port.
        interval: replaces `INTERVAL`; requires `latency`.
    """

    def __init__(
        self,
        unit: Any,
        inputs: Sequence[str],
        latency: int | None = None,
        late: Mapping[str, int] | None = None,
        output: str = "out",
        interval: int | None = None,
    ):
        self.unit, self.inputs, self.late, self.output = unit, inputs, late or {}, output
        layout = data.StructLayout({name: len(Value.cast(getattr(unit, name))) for name in inputs})
        self.iterative = hasattr(unit, "INTERVAL")
        if latency is None:
            latency = int(unit.LATENCY if self.iterative else unit.latency)
        super().__init__(layout, latency, interval or getattr(unit, "INTERVAL", 1))

    def elaborate(self, platform):
        m = Module()
        m.submodules.unit = unit = self.unit
        for name in self.inputs:
            value = self.word[name]
            for cycle in range(self.late.get(name, 0)):
                late = Signal(len(value), name=f"{name}_{cycle}")
                m.d.sync += late.eq(value)
                value = late
            m.d.comb += Value.cast(getattr(unit, name)).eq(value)
        m.d.comb += self.result.eq(getattr(unit, self.output))
        if self.iterative:
            m.d.comb += unit.start.eq(self.valid)
        self.delay_valid(m)
        return m


def pack_inputs(layout: data.StructLayout, **fields: np.ndarray) -> np.ndarray:
    """Return the words of cases, uint8 [cases, bytes of a word], most significant byte first.

    `fields` must have a uint32 array per field of the layout, with values that fit.
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


@dataclass(frozen=True, kw_only=True)
class PlayerWork:
    """Cases for a unit, see `pack_inputs`; with `bubbles`, random numbers of idle cycles separate them."""

    fields: Mapping[str, np.ndarray]
    bubbles: bool = False


@dataclass(frozen=True, eq=False)
class PlayerDevice:
    """A playable unit; `mutate` changes its Verilog, to check that a test detects a broken unit.

    The memories of its outcome are the `results` in order, uint32, and `unknown`, the positions of results with x or z
    bits, which are 0. The caller must compare the numbers of results and cases.
    """

    unit: Playable
    mutate: Callable[[str], str] | None = None

    label = "player"
    ports = ()

    def design(self, *, waves: bool = False, vectors: bool = False) -> simulation.Design:
        name = type(self.unit).__name__
        text = verilog.convert(self.unit, name, None)
        if self.mutate is not None:
            text = self.mutate(text)
        defines = {"UNIT": name, "WIDTH": self.unit.layout.size, "INTERVAL": self.unit.interval}
        return harness(__file__, "player", defines, text)

    def load(self, work: PlayerWork, directory: Path) -> tuple[list[str], int]:
        count = len(next(iter(work.fields.values())))
        with (directory / "cases").open("w") as file:
            for start in range(0, count, _CHUNK):
                chunk = {name: values[start : start + _CHUNK] for name, values in work.fields.items()}
                words = pack_inputs(self.unit.layout, **chunk)
                file.write(words.tobytes().hex("\n", words.shape[1]) + "\n")
        words = plusargs(cases=directory / "cases", results=directory / "results")
        return words + ["+bubbles"] * work.bubbles, (1 + self.unit.interval) * count + 1000

    def read_outcome(self, work: PlayerWork, directory: Path, state: Mapping[str, float]) -> Outcome:
        digits = _VALUES[np.frombuffer((directory / "results").read_bytes(), np.uint8).reshape(-1, 9)[:, :8]]
        unknown = (digits > 15).any(axis=1)
        digits[unknown] = 0
        pairs = digits[:, 0::2] << 4 | digits[:, 1::2]
        results = np.ascontiguousarray(pairs).view(">u4").ravel().astype(np.uint32)
        memories = {"results": results, "unknown": np.flatnonzero(unknown)}
        return Outcome(ending=Ending.FINISHED, cycles=0, memories=memories)
