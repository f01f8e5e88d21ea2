"""Outcomes of devices."""

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
    """Condition on which a run stopped."""

    FINISHED = 0
    """All work is done."""
    ERROR = 1
    """An error was reported, and all activity has stopped."""
    DEAD = 2
    """A link is dead, and all activity has stopped."""
    STUCK = 3
    """All activity has stopped without an error."""
    LIMIT = 4
    """The limit of cycles was reached."""


@dataclass(frozen=True)
class Event:
    """A record or instruction in an engine, with its cycles since the start; `retired` is None without retirement.

    `address` is the record's in HBM; for an engine without the core it is the index of the instruction.
    """

    queue: int
    address: int
    issued: int
    retired: int | None


def fields_by_kind(path: Path) -> dict[str, list[list[str]]]:
    """Return the fields of a file's lines by the first field, the kind of the line."""
    found = defaultdict(list)
    for kind, *fields in map(str.split, path.read_text().splitlines()):
        found[kind].append(fields)
    return found


def events_of(queue: int, issued: Sequence[int], retired: Sequence[int]) -> list[Event]:
    """Return the events of a queue in which instructions retire in the order of issue."""
    return [Event(queue, n, *cycles) for n, cycles in enumerate(zip_longest(issued, retired[: len(issued)]))]


@dataclass(frozen=True, kw_only=True)
class LinkActivity:
    """Activity of links: counters of the senders, as in `hdl.link.counters`, and disturbed frames, by wire.

    `dead` has the wires with a dead link, ascending, and the cycle of its detection if known.
    """

    dead: Mapping[int, int | None]
    disturbed: Sequence[int]
    counters: Sequence[Mapping[str, int]]
    samples: Sequence[LinkSample] = ()


def link_activity(lines: Sequence[Sequence[str]], directory: Path, sampled: bool) -> LinkActivity:
    """Return the activity of links from the harness's samples and its lines about wires.

    A line has the wire's number, whether its link is dead, its disturbed frames, its sender's counters, and optionally
    the cycle in which the dead link was detected.
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
    """Outcome of a device, or of a part of one.

    Arguments:
        exit_code: exit code of its program, if the program ended.
        console: text that its program printed.
        errors: reported errors, in order; as text, cause and location.
        counters: values of the device's counters, nested, by name.
        events: an `Event` for each record in the order of issue; for the controller without a core, `TraceEntry`s.
        activity: for a profiled core, the cycles in which each counter counted; see `run.harness.activity`.
        parts: outcomes of cores or images by number, or of engines by name.
        memories: final contents by name.
        seconds: wall time from the first clock edge to the end.
        host: whether the host of a board read the outcome, which then has no parts and events.
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
        return self.errors[0] if self.errors else None

    @property
    def faults(self) -> dict[int | str, Any]:
        """The first error of each part that has errors."""
        return {name: part.error for name, part in self.parts.items() if part.errors}

    @property
    def retired(self) -> list[int]:
        return [event.retired for event in self.events if event.retired is not None]
