"""GTKWave save files: what a waveform shows first, in groups, with words where the hardware has enumerations.

A save file names signals by the names that the waveform gives them, which differ a little between simulators, so it is
made from the waveform's own header.
"""

import math
import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from vcd.gtkw import GTKWSave, make_translation_filter

from hdl.arith.formats import FormatCode
from hdl.elementwise import instruction as elementwise
from hdl.elementwise.step import Phase
from hdl.memory.port import Storage
from hdl.tensor.engine import TensorEngine
from hdl.tensor.instruction import Opcode
from spec.config import LOAD_COLUMNS
from tb.bench import UsageError, bench_named
from tb.doctor import MissingTool, require
from tb.report import terminal
from tb.simulation import SIM_BUILD

__all__ = ["ELEMENTWISE_GROUPS", "GROUPS", "Trace", "open_waves", "signals", "waveform", "write_save_file"]

WINDOW = (1600, 1000)
"""Size of GTKWave's window in pixels."""

NAMES_WIDTH = 330
"""Pixels of it for the names and values of the signals."""

MARGIN = 80
"""Pixels of it that show neither names nor waves."""

FRAME = 200
"""GTKWave's zoom is the negative logarithm, to base 2, of the time that so many pixels stand for."""

ENUMS: dict[str, tuple[type, ...]] = {
    "tensor": (Opcode, FormatCode),
    "elementwise": (elementwise.Opcode, elementwise.Op, Phase, FormatCode, Storage),
}
"""Enumerations that are shown as words, by harness."""


@dataclass(frozen=True)
class Trace:
    """A line of the waveform.

    Arguments:
        signal: hierarchical name in the harness.
        alias: what it is called on the screen.
        format: "hex", "dec", "signed" or "bin", or one of `ENUMS`.
    """

    signal: str
    alias: str
    format: object = "hex"


def _instruction(*names: str) -> list[Trace]:
    formats = {"opcode": Opcode, "dtype": FormatCode, "address": "hex", "stride": "hex", "psum": "hex"}
    return [Trace(f"engine.instructions__payload.{name}", name, formats.get(name, "dec")) for name in names]


_AT_ROW0 = TensorEngine.INPUT_LATENCY - 1
"""Number of the register with which a load step, or a swap, reaches row 0."""

GROUPS: dict[str, list[Trace]] = {
    "commands": [
        Trace("engine.instructions__valid", "valid", "bin"),
        Trace("engine.instructions__ready", "ready", "bin"),
        *_instruction("opcode", "dtype", "half", "k", "m", "n", "address", "stride", "psum", "accumulate"),
    ],
    "stationary": [
        Trace("engine.loader.waiting", "wait for shadow weights", "bin"),
        Trace("engine.loader.stalled", "wait for memory", "bin"),
        Trace("engine.loader.step_valid", "load step", "bin"),
        Trace("engine.loader.distance", "to tile", "dec"),
        Trace("engine.stationary__address", "address"),
        Trace(f"engine.load{_AT_ROW0}", "row 0: load", "bin"),
        Trace("engine.distance_at_row0", "row 0: distance", "dec"),
        *(
            Trace(f"engine.edge0__weights_out__0__{column}", f"row 0: weight {column}")
            for column in range(LOAD_COLUMNS)
        ),
    ],
    "moving": [
        Trace("engine.mover.wait_weights", "wait for weights", "bin"),
        Trace("engine.mover.wait_operand", "wait for operand", "bin"),
        Trace("engine.mover.wait_psum", "wait for PSUM", "bin"),
        Trace("engine.mover.column_valid", "column valid", "bin"),
        Trace("engine.mover.index", "column", "dec"),
        Trace("engine.moving__address", "address"),
        Trace(f"engine.swap{_AT_ROW0}", "row 0: swap", "bin"),
        Trace("engine.edge0__moving_out__0", "row 0: operand"),
    ],
    "PSUM": [
        Trace("engine.psum0__valid", "write to partitions", "bin"),
        Trace("engine.psum0__write.address", "address"),
        Trace("engine.psum0__write.accumulate", "accumulate", "bin"),
        Trace("engine.sum0", "sum of column 0 (FP32)"),
        Trace("engine.retired", "instruction retired", "bin"),
        Trace("drain_go", "read", "bin"),
        Trace("engine.psum_address", "read address"),
    ],
    "counters": [
        Trace(name, name.replace("_", " "), "dec")
        for name in ("cycles", "busy", "columns", "macs", "loads", "wait_weights", "wait_operand", "wait_psum")
    ],
}
"""What is shown of the tensor engine in the harness of `tb/tensor.v`, from top to bottom."""


def _engine_groups(engine: str) -> dict[str, list[Trace]]:
    """Return what is shown of the vector or the scalar engine in the harness of `tb/elementwise.v`."""
    typed = {"opcode": elementwise.Opcode, "op0": elementwise.Op, "op1": elementwise.Op}
    typed |= {f"{access}_dtype": FormatCode for access in ("dst", "a", "b")}
    fields = ("opcode", "partitions", "count0", "count1", "op0", "op1", "dst_dtype", "a_dtype", "b_dtype", "overlap")
    step = f"{engine}.lanes_step"
    return {
        f"{engine}: commands": [
            Trace(f"{engine}_valid", "valid", "bin"),
            Trace(f"{engine}_ready", "ready", "bin"),
            *(Trace(f"{engine}.instructions__payload.{name}", name, typed.get(name, "dec")) for name in fields),
            Trace(f"{engine}.error.valid", "error", "bin"),
            Trace(f"{engine}.error.cause", "cause", "dec"),
        ],
        f"{engine}: steps": [
            Trace(f"{engine}_sbuf_valid", "read SBUF", "bin"),
            Trace(f"{engine}_sbuf_address", "SBUF address"),
            Trace(f"{engine}_psum_valid", "read PSUM", "bin"),
            Trace(f"{engine}_psum_address", "PSUM address"),
            Trace(f"{engine}.lanes_valid", "to the lanes", "bin"),
            Trace(f"{step}.opcode", "opcode", elementwise.Opcode),
            Trace(f"{step}.phase", "phase", Phase),
            Trace(f"{step}.position", "position", "dec"),
        ],
        f"{engine}: results": [
            Trace(f"{engine}.result_valid", "from the lanes", "bin"),
            Trace(f"{engine}_write_valid", "write", "bin"),
            Trace(f"{engine}.write__storage", "storage", Storage),
            Trace(f"{engine}_write_address", "address"),
            Trace(f"{engine}_write_enable", "partitions", "bin"),
            Trace(f"{engine}_write_mask", "bytes", "bin"),
            Trace(f"{engine}_write_data", "data"),
            Trace(f"{engine}_retires", "instruction retired", "bin"),
        ],
        f"{engine}: counters": [
            Trace(f"{engine}.counters.{name}", name.replace("_", " "), "dec")
            for name in ("busy", "instructions", "elements", "wait_sbuf", "wait_psum", "wait_write")
        ],
    }


ELEMENTWISE_GROUPS = {"run": [Trace("cycles", "cycles", "dec")]} | _engine_groups("vector") | _engine_groups("scalar")
"""What is shown of the vector and the scalar engine, as far as they are there."""

_GROUPS = {"tensor": GROUPS, "elementwise": ELEMENTWISE_GROUPS}


def waveform(test: str, root: Path = SIM_BUILD) -> Path:
    """Return where the latest waveform of a TEST is."""
    return root / "waves" / f"{test}.vcd"


def signals(vcd: Path) -> dict[str, str]:
    """Return the signals of a waveform by plain name (no escapes, no range), with the name that GTKWave gives them."""
    found = {}
    scope = []
    with vcd.open() as lines:
        for line in lines:
            words = line.split()
            if words[:1] == ["$scope"]:
                scope.append(words[2])
            elif words[:1] == ["$upscope"]:
                scope.pop()
            elif words[:1] == ["$var"]:
                name = "".join(words[4:-1])
                plain = re.sub(r"\[\d+:\d+\]$", "", name).removeprefix("\\")
                # A name with a dot in it, such as that of a structure's field, is escaped in GTKWave.
                escape = "\\" if "." in plain or name.startswith("\\") else ""
                shown = ".".join([*scope, escape + name.removeprefix("\\")])
                found.setdefault(".".join([*scope, plain]), shown)
            elif words[:1] == ["$enddefinitions"]:
                break
    return found


def _end(vcd: Path) -> int:
    """Return the last time stamp of a waveform."""
    with vcd.open("rb") as stream:
        stream.seek(max(0, vcd.stat().st_size - (1 << 20)))
        return int(re.findall(rb"^#(\d+)", stream.read(), re.MULTILINE)[-1])


def write_save_file(vcd: Path) -> Path:
    """Write `<name>.gtkw` beside the waveform `<name>.vcd`, and the words of each enumeration; return its path."""
    known = signals(vcd)
    top = next(top for top in _GROUPS if f"{top}.clk" in known)
    filters = dict(_filters(vcd, top))
    path = vcd.with_suffix(".gtkw")
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    with unfinished.open("w") as stream:
        save = GTKWSave(stream)
        save.dumpfile(str(vcd.resolve()))
        save.dumpfile_size(vcd.stat().st_size)
        save.size(*WINDOW)
        save.zoom_markers(zoom=-math.log2(max(1, _end(vcd)) / (WINDOW[0] - NAMES_WIDTH - MARGIN) * FRAME))
        save.signals_width(NAMES_WIDTH)
        save.sst_expanded(False)
        save.trace(known[f"{top}.clk"], "clk", datafmt="bin")
        save.trace(known[f"{top}.rst"], "rst", datafmt="bin")
        for group, traces in _GROUPS[top].items():
            engine = group.partition(":")[0]
            if engine != group and f"{top}.{engine}.clk" not in known:
                continue
            with save.group(group):
                for trace in traces:
                    signal = known[f"{top}.{trace.signal}"]
                    words = filters.get(trace.format)
                    save.trace(
                        signal,
                        trace.alias,
                        datafmt="hex" if words else trace.format,
                        translate_filter_file=words,
                    )
    unfinished.replace(path)
    return path


def _filters(vcd: Path, top: str) -> Iterator[tuple[type, str]]:
    """Write a translation file for each enumeration of a harness, and yield the enumeration and the file's path."""
    for enum in ENUMS[top]:
        # Enumerations of different engines have the same name.
        path = vcd.with_name(f"{enum.__name__}.words" if top == "tensor" else f"{top}_{enum.__name__}.words")
        width = enum.as_shape().width
        unfinished = path.with_name(f".{path.name}.{os.getpid()}")
        unfinished.write_text(make_translation_filter([(e.value, e.name) for e in enum], datafmt="hex", size=width))
        unfinished.replace(path)
        yield enum, str(path.resolve())


def open_waves(test: str, root: Path = SIM_BUILD) -> int:
    """Open the latest waveform of a TEST in GTKWave, wait until it is closed, and return GTKWave's exit status.

    Where there is none yet, the TEST runs with its default variables and WAVES=1 first.

    Raises:
        UsageError: if the TEST records no waveforms.
        MissingTool: if GTKWave or a display is missing.
    """
    if not any(option.name == "WAVES" for option in bench_named(test).options):
        raise UsageError(f"TEST must be one with a variable WAVES, such as matmul, not {test!r}")
    require("gtkwave")
    if not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        raise MissingTool(
            f"a display is missing (neither DISPLAY nor WAYLAND_DISPLAY is set); on a machine that has one, run "
            f"gtkwave {waveform(test, root).with_suffix('.gtkw')}"
        )
    vcd = waveform(test, root)
    if not vcd.is_file():
        terminal(stderr=True).print(f"no waveform of {test} yet: running make sim TEST={test} WAVES=1", markup=False)
        bench = bench_named(test)
        bench.run(bench.settings(["WAVES=1"])).show()
    save = vcd.with_suffix(".gtkw")
    if not save.is_file():
        save = write_save_file(vcd)
    command = ["gtkwave", "--rcvar", "splash_disable on", "--rcvar", "use_maxtime_display 0", str(save)]
    return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode
