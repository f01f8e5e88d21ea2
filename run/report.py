"""Reports of TESTs: table, JSON record and progress display."""

import json
import math
import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from neuroncore_rtl import SIM_BUILD
from neuroncore_rtl.run.estimates import estimate, remark, remember
from neuroncore_rtl.run.files import write_text
from neuroncore_rtl.run.monitor import Ongoing, watched
from neuroncore_rtl.run.shell import terminal
from neuroncore_rtl.run.wrong_tile import WrongTile
from neuroncore_rtl.spec.config import Config

__all__ = [
    "Report", "Share", "align_rows", "only_long", "progress", "recording_in", "recordings", "set_within",
    "write_record",
]  # fmt: skip

RESULTS = SIM_BUILD / "results"  # folder of the JSON records
_RECORDINGS = ContextVar("recordings", default=SIM_BUILD)
_QUIET = ContextVar("quiet", default=False)

_Value = TypeVar("_Value")

_NUMBER = re.compile(r"-?[\d.,]*(e[+-]\d+)?%?|nan|-?inf")


def recordings() -> Path:
    """Return the folder of timelines, waveforms, profiles and pictures."""
    return _RECORDINGS.get()


@contextmanager
def set_within(variable: ContextVar[_Value], value: _Value) -> Iterator[_Value]:
    """Give a variable a value in this context."""
    token = variable.set(value)
    try:
        yield value
    finally:
        variable.reset(token)


def recording_in(folder: Path) -> AbstractContextManager[Path]:
    """Let runs in this context record their files in `folder`, separate from concurrent runs."""
    return set_within(_RECORDINGS, folder)


def align_rows(rows: Iterable[Sequence[str]], right: Collection[int] = ()) -> list[str]:
    """Return rows of texts as lines with columns, of which those numbered in `right` are right-aligned."""
    rows = list(rows)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = enumerate(zip(row, widths, strict=True))
        lines.append("  ".join(cell.rjust(width) if n in right else cell.ljust(width) for n, (cell, width) in cells))
    return [line.rstrip() for line in lines]


def write_record(path: Path, record: object) -> Path:
    """Store a record as JSON, atomically; return its path."""
    return write_text(path, json.dumps(record, indent=2) + "\n")


class Share(float):
    """A fraction, which a report prints in percent and a record stores as a number from 0 to 1."""


@dataclass(frozen=True, kw_only=True)
class Report:
    """The outcome of a TEST.

    `tb.tests.scenario` adds the comparison of memories, the failures of jobs, `test`, `label`, `settings` and `cycles`.

    Arguments:
        label: distinguishes the records of a TEST; see `run.settings.Settings.label`.
        names: names of the jobs, for their failures; empty for a single job.
        compared, mismatches: number of results compared with golden, and of different ones; no comparison is a failure.
        cycles: None if the TEST does not measure them.
        ideal_cycles: cycles that the run would need without stalls.
        hbm_cycles: fewest cycles in which HBM moves the operands and results; None without HBM.
        rows: further rows of the table by heading, with "_" for a blank; JSON values, percentages as `Share`. A mapping
            of mappings becomes a nested table, as does a list of mappings, in which the first value names a row.
        failures: other reasons of a failure, a sentence each.
        details: further entries of the record, not in the table; JSON values.
        curves: like `details`, values of every step by quantity and curve, such as {"loss": {"sr": [2.3, ...]}}.
        modelled: whether the cycles are the timing model's; no RTL has run, and nothing was compared.
        judge: source of the verdict if not golden.
        wrong_tile: the first tile of a product that differs, for the run's page.
        product: operands of a product on the RTL, codes [M, K] and [K, N], their format and the machine, for the page.
        config: machine whose clock gives the cycles a time; None if they have none.
    """

    test: str = ""
    label: str = ""
    settings: Mapping[str, object] = field(default_factory=dict)
    names: Sequence[str] = ()
    compared: int = 0
    mismatches: int = 0
    cycles: int | None = None
    ideal_cycles: int | None = None
    hbm_cycles: int | None = None
    rows: Mapping[str, object] = field(default_factory=dict)
    failures: Sequence[str] = ()
    details: Mapping[str, object] = field(default_factory=dict)
    curves: Mapping[str, Mapping[str, Sequence[float]]] = field(default_factory=dict)
    modelled: bool = False
    judge: str | None = None
    wrong_tile: WrongTile | None = None
    product: tuple[Any, Any, Any, Any] | None = None
    config: Config | None = None

    @property
    def microseconds(self) -> float | None:
        """Time of the run, without its start and end; None without a clock."""
        return None if self.config is None or self.cycles is None else self.config.microseconds(self.cycles)

    @property
    def run_microseconds(self) -> float | None:
        """Time of the run with its start and end; None without a clock, or without `Config.launch_cycles`."""
        if self.config is None or self.cycles is None or not self.config.launch_cycles:
            return None
        return self.config.microseconds(self.cycles + self.config.launch_cycles)

    @property
    def utilisation(self) -> float | None:
        return self.ideal_cycles / self.cycles if self.cycles and self.ideal_cycles is not None else None

    @property
    def bit_exact(self) -> bool | None:
        """Whether all results are golden's; None if nothing was compared."""
        return self.mismatches == 0 if self.compared else None

    @property
    def problems(self) -> list[str]:
        """Reasons of a failure, a sentence each; empty if the run passed."""
        problems = list(self.failures)
        if self.compared == 0 and not self.modelled and self.judge is None:
            problems.append("nothing was compared")
        if self.mismatches:
            problems.append(f"{self.mismatches} of {self.compared} results differ from the golden model")
        return problems

    @property
    def exit_status(self) -> int:
        return 1 if self.problems else 0

    def as_json(self) -> dict[str, object]:
        cycles = ("cycles", "ideal_cycles", "hbm_cycles", "utilisation")
        figures = (*cycles, "compared", "mismatches", "bit_exact", "modelled")
        times = {"microseconds": self.microseconds, "run_microseconds": self.run_microseconds}
        record = {"test": self.test, "settings": self.settings, **{name: getattr(self, name) for name in figures}}
        record |= {name: time for name, time in times.items() if time is not None}
        record |= {**self.rows, **self.details} | ({"curves": self.curves} if self.curves else {})
        record |= {"problems": self.problems, "exit_status": self.exit_status}
        return {name: _plain(value) for name, value in record.items()}

    @property
    def stem(self) -> str:
        """Name of the record and the page, without suffix: `<test>` or `<test>-<label>`."""
        return "-".join(filter(None, (self.test, self.label)))

    def write(self, directory: Path = RESULTS) -> Path:
        """Store the record atomically; return its path."""
        return write_record(directory / f"{self.stem}.json", self.as_json())

    def show(self, console: Console | None = None) -> None:
        console = console or terminal()
        for line in align_rows(self._rows()):
            console.print(line, markup=False, soft_wrap=True)
        for problem in self.problems:
            console.print(f"FAILED: {problem}", style="red", markup=False)
        if not self.problems:
            said = ("MODEL: no RTL has run", "yellow") if self.modelled else ("PASSED", "green")
            console.print(said[0], style=said[1])

    def _rows(self) -> Iterator[tuple[str, str]]:
        yield "test", self.test
        yield "settings", " ".join(f"{name}={value}" for name, value in self.settings.items() if value is not None)
        if self.cycles is not None:
            yield "cycles", f"{self.cycles:,}" + (" (timing model)" if self.modelled else "")
        if self.config is not None and self.cycles is not None and self.config.clock_mhz:
            yield "microseconds", self.config.microseconds_text(self.cycles)
        if self.utilisation is not None:
            yield "ideal cycles", f"{self.ideal_cycles:,}"
            yield "utilisation", f"{self.utilisation:.1%}"
        for heading, value in self.rows.items():
            yield from _rows_of(heading.replace("_", " "), value)
        if self.judge is not None:
            yield "compared", f"nothing with the golden model: passed as {self.judge} says"
        elif not self.modelled:
            yield "compared", f"{self.compared:,}"
            if self.bit_exact is not None:
                yield "bit-exact", _readable(self.bit_exact)


def _plain(value: object) -> object:
    """Return a value for JSON, which has no paths, infinities and NaN."""
    if isinstance(value, Mapping):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return str(value) if isinstance(value, Path) else value


def _rows_of(heading: str, value: object) -> Iterator[tuple[str, str]]:
    if isinstance(value, list) and value and all(isinstance(row, Mapping) for row in value):
        value = {name: dict(row) for (_, name), *row in (row.items() for row in value)}
    if not (isinstance(value, Mapping) and value and all(isinstance(row, Mapping) for row in value.values())):
        yield heading, _readable(value)
        return
    columns = list(dict.fromkeys(name for row in value.values() for name in row))
    cells = [[_readable(row[name]) if name in row else "" for name in columns] for row in value.values()]
    # Words are left-aligned, without a title; numbers are right-aligned.
    numbers = {n for n, column in enumerate(zip(*cells, strict=True)) if all(map(_NUMBER.fullmatch, column))}
    titles = [name.replace("_", " ") if n in numbers else "" for n, name in enumerate(columns)]
    yield from zip((heading, *(f"  {name}" for name in value)), align_rows([titles, *cells], numbers), strict=True)


def _readable(value: object) -> str:
    if value is None or (isinstance(value, Mapping | list | tuple) and not value):
        return "none"
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_readable(part)}" for name, part in value.items())
    if isinstance(value, list | tuple):
        return (", " if any(isinstance(part, str) for part in value) else " ").join(map(_readable, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.1%}" if isinstance(value, Share) else f"{value:.5g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def only_long() -> AbstractContextManager[bool]:
    """Let `progress` show only what is expected to take long."""
    return set_within(_QUIET, True)


@contextmanager
def progress(
    text: str, activity: str = "", size: float = 1, done: Callable[[], float] | None = None, machine: object = None
) -> Iterator[None]:
    """Show on stderr that something is in progress: a spinner on a terminal, else lines at start and end.

    If it is expected to take long, the text says how long; see `run.estimates`. `run.monitor` records it.

    Arguments:
        text: the activity, for the reader.
        activity: its name among the recorded durations; default `text`.
        size: to which its duration is proportional.
        done: returns the part of the work that is done, 0 to 1; 0 while it is not known. Another thread calls it, and
            a duration that it foretells is shown.
        machine: the simulated machine, see `run.monitor`.
    """
    console, started, expected = terminal(stderr=True), time.monotonic(), estimate(activity or text, size)
    shown = text + remark(expected)
    quiet = _QUIET.get() and shown == text
    recorded = Ongoing(text, started, expected, done, machine=machine)
    if quiet:
        yield
    elif console.is_terminal:
        columns = SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn()
        with Progress(*columns, console=console, transient=True) as display, watched(recorded):
            task = display.add_task(shown)
            recorded.show = lambda seconds: display.update(task, description=text + remark(seconds))
            yield
    else:
        console.print(f"{shown} ...", markup=False)

        def say(seconds: float) -> None:
            if remark(seconds):
                console.print(f"{text}{remark(seconds)} ...", markup=False)
                recorded.show = None  # a file needs one estimate

        recorded.show = say if shown == text else None
        with watched(recorded):
            yield
        recorded.show = None  # else they refer to each other
    seconds = time.monotonic() - started
    remember(activity or text, seconds, size)
    if not quiet:
        console.print(f"{text}: {seconds:.1f} s", markup=False)
