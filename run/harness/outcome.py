"""What becomes of a device's work, whichever device it is and whichever simulator runs it."""

import enum
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from neuroncore_rtl.hdl.link.counters import LinkCounters
from neuroncore_rtl.run.harness.link_view import LinkSample, read_samples
from neuroncore_rtl.run.sim.layouts import plain

__all__ = ["Ending", "Event", "LinkActivity", "Outcome", "events_of", "fields_by_kind", "link_activity"]


class Ending(enum.IntEnum):
    """How a run ended."""

    FINISHED = 0
    """Everything that was to be done is done."""
    ERROR = 1
    """An error was reported, and nothing moves any more."""
    DEAD = 2
    """A link is dead, and nothing moves any more."""
    STUCK = 3
    """Nothing moves any more, and nobody says why."""
    LIMIT = 4
    """The limit of cycles was reached."""


@dataclass(frozen=True)
class Event:
    """A record, or an instruction, in an engine.

    Arguments:
        queue: which one of its core's.
        address: of the record in HBM; of an engine alone, the number of the instruction.
        issued, retired: cycles since the start; None if it did not come to that.
    """

    queue: int
    address: int
    issued: int
    retired: int | None


def fields_by_kind(path: Path) -> dict[str, list[list[str]]]:
    """Return the fields of the lines of a file, in order, by the first field of each, which they are without."""
    found = defaultdict(list)
    for kind, *fields in map(str.split, path.read_text().splitlines()):
        found[kind].append(fields)
    return found


def events_of(queue: int, issued: Sequence[int], retired: Sequence[int]) -> list[Event]:
    """Return the instructions of a queue that retires them in order, from the cycles in which they came and went."""
    return [Event(queue, n, *cycles) for n, cycles in enumerate(zip_longest(issued, retired[: len(issued)]))]


@dataclass(frozen=True, kw_only=True)
class LinkActivity:
    """What the links of an instance did.

    Arguments:
        dead: wires whose link is dead, ascending, and the cycle in which it was found so if the harness tells.
        disturbed: by wire, the frames that were disturbed.
        counters: by wire, those of the end that sends on it, by the names of `hdl.link.counters`.
        samples: the counters in the course of the run; empty if it was not sampled.
    """

    dead: Mapping[int, int | None]
    disturbed: Sequence[int]
    counters: Sequence[Mapping[str, int]]
    samples: Sequence[LinkSample] = ()


def link_activity(lines: Sequence[Sequence[str]], directory: Path, sampled: bool) -> LinkActivity:
    """Return what the links did, from the fields of a harness's lines of the wires.

    Arguments:
        lines: of each wire its number, whether its link is dead, its disturbed frames, and the counters of the end that
            sends on it; with the cycle in which it was found dead behind them if the harness tells.
        directory: of the run.
        sampled: whether the links were sampled.
    """
    wires = sorted(lines, key=lambda fields: int(fields[0]))
    return LinkActivity(
        dead={int(fields[0]): int(fields[4]) if fields[4:] else None for fields in wires if fields[1] == "1"},
        disturbed=[int(fields[2]) for fields in wires],
        counters=[plain(LinkCounters, int(fields[3], 16)) for fields in wires],
        samples=read_samples((directory / "samples").read_text()) if sampled else [],
    )


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of a device's work, or of that of one of its parts.

    Arguments:
        ending: how it ended.
        cycles: that it took.
        exit_code: of its program; None if that did not end, or if there is none.
        console: what its program printed.
        errors: that were reported, in order; as text, each names its cause and its place.
        counters: by their names, nested.
        events: in the order in which they began: an `Event` for each record, of the controller alone a `TraceEntry`.
        activity: of a core that is profiled, the cycles in which its counters counted; see `run.harness.activity`.
        parts: what became of each core or image by its number, or of each engine by its name.
        links: what the links did, where there are some.
        memories: what the memories hold in the end, by their names.
        seconds: wall time from the first clock edge to the end.
        host: whether it is what the host of a board can read: no parts, no events.
    """

    ending: Ending
    cycles: int
    exit_code: int | None = None
    console: str = ""
    errors: Sequence[Any] = ()
    counters: dict[str, Any] = field(default_factory=dict)
    events: Sequence = ()
    activity: Mapping[str, Sequence[tuple[int, int]]] = field(default_factory=dict)
    parts: Mapping[int | str, "Outcome"] = field(default_factory=dict)
    links: LinkActivity | None = None
    memories: Mapping[str, np.ndarray] = field(default_factory=dict)
    seconds: float = 0.0
    host: bool = False

    @property
    def error(self) -> Any:
        """The first error; None if there is none."""
        return self.errors[0] if self.errors else None

    @property
    def faults(self) -> dict[int | str, Any]:
        """The first error of each part that has one."""
        return {name: part.error for name, part in self.parts.items() if part.errors}

    @property
    def retired(self) -> list[int]:
        """The cycles in which its records retired, in the order in which they began."""
        return [event.retired for event in self.events if event.retired is not None]
