"""A task runs on a device and on golden, every byte of HBM is compared, and what else can be wrong is looked for: what
the TESTs of the core, of its instances and of the collective engines share."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from neuroncore_rtl.run.check.image_failures import LISTED
from neuroncore_rtl.run.check.link_table import link_summary, link_table
from neuroncore_rtl.run.harness.outcome import Outcome
from neuroncore_rtl.run.harness.run import Device, run
from neuroncore_rtl.run.report import progress, recordings, shown
from neuroncore_rtl.run.settings import Settings
from neuroncore_rtl.run.view.link_picture import draw_links
from neuroncore_rtl.run.view.timeline import TrackGroup, write_timeline
from neuroncore_rtl.run.view.waves import waveform, write_save_file
from neuroncore_rtl.spec.instance import Instance

__all__ = ["Executed", "Task", "draw", "execute", "first_task", "run_recorded"]


class Task(Protocol):
    """What is executed, and on what.

    Attributes:
        instance: whose links take part; None if there are none.
        doing: what the device does, for whoever waits.
        title: what the picture of the links is of.
        core: the core whose insides a waveform shows; None: as of `levels`.
        levels: of the hierarchy that a waveform has between the harness and what DEPTH counts from.
    """

    instance: Instance | None
    doing: str
    title: str
    core: int | None
    levels: int

    def device(self, *, waves: bool) -> Device:
        """Return what executes it; waves: with what a waveform needs."""

    def work(self, seed: int, *, sampled: bool) -> object:
        """Return what the device is told to do; seed: of what befalls it; sampled: whether the links are watched."""

    def golden(self) -> tuple[Sequence[np.ndarray], object]:
        """Return the HBM of each core, uint8 [bytes], after golden has executed it, and what else `failures` needs."""

    def failures(self, outcome: Outcome, expected: object) -> Iterable[str]:
        """Yield what is wrong with the outcome besides the contents of HBM, a sentence each."""

    def cycles(self, outcome: Outcome) -> int:
        """Return the cycles that it took."""

    def tracks(self, outcome: Outcome) -> Iterable[TrackGroup]:
        """Return what its timeline shows."""


@dataclass(frozen=True, kw_only=True)
class Executed:
    """A task that ran on both.

    Arguments:
        outcome: what became of it on the RTL.
        golden: the HBM of each core, uint8 [bytes], as golden left it.
        cycles: that it took.
        compared, mismatches: bytes of all cores' HBM.
        failures: what else is wrong, a sentence each.
        files: what was recorded, by what it is.
        links: what each link did, if there are any; see `run.check.link_table.link_table`.
        link_summary: the same in a few lines, for a report.
    """

    outcome: Outcome
    golden: Sequence[np.ndarray]
    cycles: int
    compared: int
    mismatches: int
    failures: tuple[str, ...]
    files: Mapping[str, str]
    links: Mapping[str, Mapping[str, object]]
    link_summary: Mapping[str, object]

    @property
    def measured(self) -> dict[str, object]:
        """The fields of a report that are of the run alone."""
        return {name: getattr(self, name) for name in ("compared", "mismatches", "cycles", "failures")}


class _Asked(Exception):
    """Brings the task to who asks for it."""


_ASKING = ContextVar("asking", default=False)


def first_task(run: Callable[[], object]) -> Task | None:
    """Return the first task that a TEST would execute, in whose place nothing runs; None: it executes none.

    Arguments:
        run: runs the TEST.
    """
    token = _ASKING.set(True)
    try:
        run()
    except _Asked as asked:
        return asked.args[0]
    finally:
        _ASKING.reset(token)
    return None


def execute(task: Task, settings: Settings, label: str, *, pictures: str | None = None) -> Executed:
    """Run a task on its device and on golden, and compare all memories byte for byte; prints what differs.

    Arguments:
        task: the task.
        settings: with the options SIM, WAVES, DEPTH and SEED.
        label: names the waveform.
        pictures: names the timeline and the picture of the links; if None, there are none.
    """
    if _ASKING.get():
        raise _Asked(task)
    with progress("golden"):
        memories, expected = task.golden()
    device, work = task.device(waves=bool(settings.waves)), task.work(settings.seed, sampled=pictures is not None)
    outcome, recorded = run_recorded(
        device, work, settings, waveform(label), task.doing, core=task.core, levels=task.levels
    )
    cycles, links, summary = task.cycles(outcome), {}, {}
    if task.instance is not None:
        links = link_table(task.instance, outcome.links.counters, cycles, outcome.links.dead)
        summary = link_summary(task.instance, links, sum(outcome.links.disturbed))
    files = {}
    if pictures is not None:
        drawn = (task.instance, links, task.title, f"{cycles:,} cycles")
        files = draw(pictures, task.tracks(outcome), *(drawn if task.instance is not None else ()))
    return Executed(
        outcome=outcome,
        golden=memories,
        cycles=cycles,
        compared=outcome.memories["hbm"].size,
        mismatches=_differences(outcome.memories["hbm"], memories),
        failures=tuple(task.failures(outcome, expected)),
        files=files | recorded,
        links=links,
        link_summary=summary,
    )


def draw(name: str, tracks: Iterable[TrackGroup], *links: object) -> dict[str, str]:
    """Write the timeline of a run, and a picture of its links if there are any; return both for a report.

    Arguments:
        name: of the files.
        tracks: what the timeline shows.
        links: what :func:`run.view.link_picture.draw_links` has for arguments behind the path.
    """
    files = {"timeline": shown(write_timeline(recordings() / "timelines" / f"{name}.json", tracks))}
    return files | ({"picture": shown(draw_links(recordings() / "plots" / f"{name}.png", *links))} if links else {})


def run_recorded(
    device: Device,
    work: object,
    settings: Settings,
    waves: Path,
    doing: str,
    *,
    core: int | None = None,
    levels: int = 0,
) -> tuple[Outcome, dict[str, str]]:
    """Run a device; return what became of it, and for a report the waveform, if WAVES asks for one.

    Arguments:
        device, work, doing: see `run.harness.run.run`.
        settings: with the options `RECORDED`.
        waves: where the waveform is recorded.
        core, levels: see `Task`.
    """
    recorded, levels = waves if settings.waves else None, settings.depth and settings.depth + levels
    outcome = run(device, work, sim=settings.sim, waves=recorded, waves_levels=levels, doing=doing)
    return outcome, {"waveform": shown(write_save_file(waves, core))} if settings.waves else {}


def _differences(found: np.ndarray, expected: Sequence[np.ndarray]) -> int:
    """Return how many bytes of HBM differ, and print the first of them."""
    differs = np.argwhere(found != np.stack(expected))
    for core, address in differs[:LISTED]:
        where = f"core {core}, HBM" if len(found) > 1 else "HBM"
        print(f"{where} {address:#x}: RTL {found[core, address]:02x}, golden {expected[core][address]:02x}")
    return len(differs)
