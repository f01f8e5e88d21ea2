"""GTKWave save files: initial groups of a waveform, with names of enumeration members.

Signal names in a waveform differ slightly between simulators, so a save file is made from the waveform's header.
"""

import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from io import StringIO
from itertools import takewhile
from pathlib import Path
from typing import Any, cast

from vcd.gtkw import GTKWSave, make_translation_filter
from vcdvcd import VCDVCD

from neuroncore_rtl import SIM_BUILD
from neuroncore_rtl.run.files import write_text
from neuroncore_rtl.run.report import recordings
from neuroncore_rtl.run.view import core_waves, engine_waves, instance_waves
from neuroncore_rtl.run.view.wave_groups import Trace
from neuroncore_rtl.run.view.wave_numbers import NUMBERS, WIDTHS, words_in

__all__ = ["latest", "signals", "waveform", "write_save_file"]

WINDOW = (1600, 1000)

NAMES_WIDTH = 330
"""Pixels for names and values of signals."""

MARGIN = 80
"""Pixels of the width that show neither names nor waves."""

EARLY = 1 << 22
"""Characters of a waveform in which the end of reset is searched."""

FRAME = 200
"""Width in pixels that determines the zoom: GTKWave's zoom is -log2 of the time that these pixels represent."""


@dataclass(frozen=True)
class _Display:
    """Waveform lines that GTKWave shows for a harness.

    `groups` maps the signals of the waveform, and the core of an instance to show in detail, to groups of lines. `open`
    groups are open initially, by default all. The initial window begins after reset and has at most `cycles`.
    """

    groups: Callable[[Collection[str], int | None], Mapping[str, list[Trace]]]
    open: Collection[str] | None = None
    cycles: int | None = None


_HARNESSES = {
    "tensor": _Display(lambda known, core: engine_waves.tensor_groups(known), engine_waves.TENSOR_OPEN, 40),
    "elementwise": _Display(lambda known, core: engine_waves.ELEMENTWISE_GROUPS),
    "riscv": _Display(lambda known, core: engine_waves.RISCV_GROUPS),
    "machine": _Display(lambda known, core: core_waves.core_groups(known), core_waves.CORE_OPEN),
    "collective": _Display(lambda known, core: instance_waves.collective_groups(known), instance_waves.INSTANCE_OPEN),
    "traffic": _Display(lambda known, core: instance_waves.traffic_groups(known), instance_waves.INSTANCE_OPEN),
    instance_waves.TOP: _Display(instance_waves.instance_groups, instance_waves.INSTANCE_OPEN),
}
"""Lines to show by harness, with the name of its Verilog file as the key."""


def waveform(name: str) -> Path:
    """Return the path of the waveform of a run."""
    return recordings() / "waves" / f"{name}.vcd"


def latest(test: str, root: Path = SIM_BUILD) -> Path | None:
    """Return the latest waveform of a TEST, if any."""
    directory = root / "waves"
    recorded = [*directory.glob(f"{test}.vcd"), *directory.glob(f"{test}-*.vcd")]
    return max(recorded, key=lambda path: path.stat().st_mtime, default=None)


def signals(vcd: Path) -> dict[str, str]:
    """Return GTKWave's names of signals by plain name, without escapes and ranges."""
    found = {}
    for path, scope in VCDVCD(str(vcd), only_sigs=True, store_scopes=True).scopes.items():
        for name in (name for name, element in scope.subElements.items() if isinstance(element, str)):
            plain = re.sub(r"\[\d+:\d+\]$", "", name).removeprefix("\\")
            # GTKWave escapes names with a dot, such as of structure fields.
            escape = "\\" if "." in plain or name.startswith("\\") else ""
            # A range of one bit is displayed as an index.
            shown = re.sub(r"\[(\d+):\1\]$", r"[\1]", f"{path}.{escape}" + name.removeprefix("\\"))
            found.setdefault(f"{path}.{plain}", shown)
    return found


def _end(vcd: Path) -> int:
    with vcd.open("rb") as stream:
        stream.seek(max(0, vcd.stat().st_size - (1 << 20)))
        return int(re.findall(rb"^#(\d+)", stream.read(), re.MULTILINE)[-1])


def _start(vcd: Path) -> tuple[int, int]:
    """Return the time at which reset ends, and the clock's period; 0 if the first `EARLY` characters do not tell."""
    times: dict[str, list[int]] = {"clk": [], "rst": []}
    changes, now = {}, 0
    with vcd.open() as stream:
        for line in takewhile(lambda line: not line.startswith("$enddefinitions"), stream):
            found = re.match(r"\s*\$var \w+ +1 (\S+) (clk|rst)\b", line)
            if found and found[2] not in changes.values():
                changes[{"clk": "1", "rst": "0"}[found[2]] + found[1]] = found[2]
        for line in stream.read(EARLY).split("\n")[:-1]:
            if line.startswith("#"):
                now = int(line[1:])
            elif line in changes:
                times[changes[line]].append(now)
    return next(iter(times["rst"]), 0), times["clk"][1] - times["clk"][0] if len(times["clk"]) > 1 else 0


def write_save_file(vcd: Path, core: int | None = None) -> Path:
    """Write `<name>.gtkw` beside the waveform `<name>.vcd`, and a file per enumeration; return its path.

    Of an instance, `core` is shown in detail.
    """
    known = signals(vcd)
    top, display = next((top, display) for top, display in _HARNESSES.items() if f"{top}.clk" in known)
    (start, period), end = _start(vcd), _end(vcd)
    if display.cycles and period:
        end = min(end, start + display.cycles * period)
    groups = {
        group: [trace for trace in traces if f"{top}.{trace.signal}" in known]
        for group, traces in display.groups(known, core).items()
    }
    words = _translations(vcd, [(known[f"{top}.{t.signal}"], t.format) for traces in groups.values() for t in traces])
    path = vcd.with_suffix(".gtkw")
    with StringIO() as stream:
        save = GTKWSave(stream)
        save.dumpfile(str(vcd.resolve()))
        save.dumpfile_size(vcd.stat().st_size)
        save.size(*WINDOW)
        save.zoom_markers(zoom=-math.log2(max(1, end - start) / (WINDOW[0] - NAMES_WIDTH - MARGIN) * FRAME))
        save.timestart(start)
        save.signals_width(NAMES_WIDTH)
        save.sst_expanded(False)
        save.trace(known[f"{top}.clk"], "clk", datafmt="bin")
        save.trace(known[f"{top}.rst"], "rst", datafmt="bin")
        for group, traces in groups.items():
            if traces:
                with save.group(group, closed=display.open is not None and group not in display.open):
                    for trace in traces:
                        form, filter = "hex" if trace.format in words else str(trace.format), words.get(trace.format)
                        signal = known[f"{top}.{trace.signal}"]
                        save.trace(signal, trace.alias, datafmt=form, translate_filter_file=filter)
        return write_text(path, stream.getvalue())


def _translations(vcd: Path, lines: Iterable[tuple[str, Any]]) -> dict[Any, str]:
    """Write a translation file for each enumeration, and one for each number format with the waveform's words.

    `lines` are signals with their formats. Return the paths by format.
    """
    signals: dict[Any, list[str]] = {}
    for signal, form in lines:
        signals.setdefault(form, []).append(signal)
    paths = {}
    for form, names in signals.items():
        if isinstance(form, type):
            # Enumerations of different engines can have the same name.
            path = vcd.with_name(f"{form.__module__.split('.', 2)[2]}.{form.__name__}.words")
            entries = [(entry.value, entry.name) for entry in cast(Any, form)]
            width = max(value for value, _ in entries).bit_length()
        elif form in NUMBERS:
            path, width = vcd.with_suffix(f".{form}.words"), WIDTHS[form]
            entries = [(word, NUMBERS[form](word)) for word in sorted(words_in(vcd, names))]
        else:
            continue
        write_text(path, make_translation_filter(entries, datafmt="hex", size=width))
        paths[form] = str(path.resolve())
    return paths
