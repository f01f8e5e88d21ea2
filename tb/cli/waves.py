"""Command of `make waves`: records a waveform the quick way and opens it in GTKWave."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from neuroncore_rtl.run.report import progress
from neuroncore_rtl.run.settings import Command, UsageError
from neuroncore_rtl.run.shell import display_path, terminal
from neuroncore_rtl.run.sim.doctor import TOOLS, MissingTool, require
from neuroncore_rtl.run.view.array_motion import is_shown
from neuroncore_rtl.run.view.waves import latest, waveform, write_save_file
from neuroncore_rtl.spec.formats import format_named
from neuroncore_rtl.tb.cli.array_picture import operands, try_product
from neuroncore_rtl.tb.cli.matrices import encode_matrix
from neuroncore_rtl.tb.cli.registry import COMMANDS

__all__ = ["open_waves", "record_waves"]


def record_waves(test: Command, assignments: Sequence[str]) -> Path:
    """Record a waveform of a TEST with all values small unless given; return its path.

    A product on a small array is recorded by Amaranth's simulator, which needs no build and knows every initial value.
    Other runs use Icarus, which builds faster than Verilator, if it is installed.
    """
    picture = next(command for command in COMMANDS if command.name == "picture")
    given = {name: value for name, _, value in (assignment.partition("=") for assignment in assignments)}
    if test.name == "matmul" and set(given) <= {option.name for option in picture.options}:
        settings = picture.settings(assignments)
        if is_shown(settings.config):
            fmt = format_named(settings.dtype)
            a, b = (encode_matrix(matrix, fmt, name) for matrix, name in zip(operands(settings), "AB", strict=True))
            with progress("recording every signal of the tensor engine"):
                path = try_product(a, b, fmt, settings.config)[1].write(waveform(test.name))
            write_save_file(path)
            return path
    words = [*assignments, *_quick(test, given)]
    terminal(stderr=True).print(f"recording: make sim TEST={test.name} {' '.join(words)}", markup=False)
    report = cast(Any, test.run(test.settings(words)))
    report.show()
    return Path(report.rows["waveform"]).with_suffix(".vcd")


def _quick(test: Command, given: Mapping[str, str]) -> list[str]:
    """Return assignments that make a recording quick, except of the variables that are given."""
    options = {option.name: option for option in test.options}
    values: dict[str, object] = {"WAVES": 1}
    if "PRESET" in options:
        values["PRESET"] = "tiny"
    if "TARGET" in options and "engine" in options["TARGET"].choices and given.get("TARGET", "engine") == "engine":
        values |= {"TARGET": "engine", "DEPTH": 0}
    if TOOLS["iverilog"].locate() is not None:
        values["SIM"] = "icarus"
    if test.name == "matmul":
        values |= dict.fromkeys("MKN", 8)
    return [f"{name}={value}" for name, value in values.items() if name not in given]


def open_waves(test: Command, assignments: Sequence[str] = ()) -> int:
    """Open a waveform of a TEST in GTKWave, wait until it is closed, and return GTKWave's exit status.

    Without variables that is the latest waveform; if there is none, or with variables, the TEST runs first.
    """
    if not any(option.name == "WAVES" for option in test.options):
        raise UsageError(f"TEST must be one with a variable WAVES, such as matmul, not {test.name!r}")
    require("gtkwave")
    if not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        recorded = (latest(test.name) or waveform(test.name)).with_suffix(".gtkw")
        raise MissingTool(
            "a display is missing (neither DISPLAY nor WAYLAND_DISPLAY is set); on a machine that has one, run "
            f"gtkwave {recorded}; make picture TEST=matmul draws the array without a display"
        )
    vcd = None if assignments else latest(test.name)
    if vcd is None:
        vcd = record_waves(test, assignments)
    save = vcd.with_suffix(".gtkw")
    if not save.is_file():
        save = write_save_file(vcd)
    terminal(stderr=True).print(f"opening {display_path(save)}", markup=False)
    command = ["gtkwave", "--rcvar", "splash_disable on", "--rcvar", "use_maxtime_display 0", str(save)]
    return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode
