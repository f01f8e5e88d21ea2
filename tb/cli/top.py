"""Terminal page of what runs on this computer, in the manner of neuron-top, from the records of `run.monitor`."""

import os
import select
import sys
import termios
import time
import tty
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from rich.console import Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from neuroncore_rtl.run import monitor
from neuroncore_rtl.run.settings import Settings
from neuroncore_rtl.run.shell import display_path, terminal

__all__ = ["live_page", "show_live"]

BAR = 16
"""Columns of a bar."""


def show_live(settings: Settings) -> int:
    """Show the page until q or Ctrl-C; print it once with ONCE, or if the output is no terminal."""
    console = terminal()
    if settings.values["ONCE"] or not console.is_terminal:
        console.print(live_page(monitor.live_records()))
        return 0
    with _keys() as pressed, suppress(KeyboardInterrupt), Live(screen=True, auto_refresh=False) as display:
        while True:
            display.update(live_page(monitor.live_records()), refresh=True)
            if pressed(monitor.PERIOD) == "q":
                break
    return 0


@contextmanager
def _keys() -> Iterator[Callable[[float], str]]:
    """Yield a function that waits some seconds for a key, and returns it; "" if none is pressed."""
    if not sys.stdin.isatty():
        yield lambda seconds: time.sleep(seconds) or ""
        return
    file = sys.stdin.fileno()
    before = termios.tcgetattr(file)
    tty.setcbreak(file)
    try:
        yield lambda seconds: os.read(file, 1).decode("latin1") if select.select([file], [], [], seconds)[0] else ""
    finally:
        termios.tcsetattr(file, termios.TCSADRAIN, before)


def live_page(records: Sequence[dict[str, Any]]) -> RenderableType:
    """Return the page of the last records of all processes."""
    if not records:
        return f"nothing runs: no living process has a record in {display_path(monitor.FOLDER)}"
    processes = [process for record in records for process in record["neuron_runtime_data"]]
    return Group(*(part for process in processes for part in _parts(process)))


def _parts(process: dict[str, Any]) -> Iterator[RenderableType]:
    report = process["report"]
    progress, memory = report["progress"], report["memory_used"]["neuron_runtime_used_bytes"]
    estimate, part, elapsed = progress["estimate"], progress["part"], progress["period"]
    rows = {
        "activity": ", ".join(progress["activities"]),
        "time": f"{_time(elapsed)}{f' of about {_time(estimate)}' if estimate and estimate > elapsed else ''}",
        "done": part and _bar(part),
        "runs": _runs(report.get("execution_stats")),
        "cycles": progress["cycles"] and f"{progress['cycles']:,}, {progress['cycles_per_second']:,.0f} a second",
        "memory": f"{_size(memory['host'])} of this computer"
        + (f", {_size(memory['neuron_device'])} of HBM" if memory["neuron_device"] else ""),
    }
    table = Table.grid("", "", padding=(0, 2))
    command = f"{process['pid']}: {process['neuron_runtime_tag']}"
    table.add_row(Text("process", "bold"), Text(command, "bold", no_wrap=True, overflow="ellipsis"))
    for heading, value in rows.items():
        if value:
            table.add_row(heading, Text(value) if isinstance(value, str) else value)
    yield table
    if cores := report["neuroncore_counters"]["neuroncores_in_use"]:
        yield _engines(cores)
    yield ""


def _engines(cores: dict[str, dict[str, Any]]) -> Table:
    """Return the utilisation of each engine of each core in percent; a column has all DMA engines."""
    table = Table("core", "any engine", box=None, padding=(0, 2, 0, 0))
    titles = list(dict.fromkeys(name.rstrip("0123456789") for core in cores.values() for name in core["engines"]))
    for title in titles:
        table.add_column(title, justify="right")
    for number, core in cores.items():
        cells = []
        for title in titles:
            shares = [share for name, share in core["engines"].items() if name.rstrip("0123456789") == title]
            cells.append(" ".join(f"{share:.0f}" for share in shares) + " %")
        table.add_row(number, _bar(core["neuroncore_utilization"] / 100), *cells)
    return table


def _bar(share: float) -> RenderableType:
    both = Table.grid("", "", padding=(0, 1))
    both.add_row(ProgressBar(1, min(share, 1), width=BAR), f"{share:.1%}")
    return both


def _runs(stats: dict[str, Any] | None) -> str:
    if stats is None:
        return ""
    passed, wrong = (stats["execution_summary"][name] for name in ("completed", "completed_with_err"))
    return f"{passed:,} passed, {wrong:,} not"


def _time(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}" if minutes >= 60 else f"{minutes}:{rest:02}"


def _size(count: int) -> str:
    return f"{count / (1 << 30):.1f} GiB" if count >= 1 << 30 else f"{count / (1 << 20):.1f} MiB"
