"""A simulated device while it runs, as the files in its run's folder tell: `pulse`, and the `events` of cores.

The simulator writes its pulse, cycles, seconds and bytes of memory, about once a second (`run.sim.run_to_end`); before
that it flushes the events. So nothing is added to a simulated cycle.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from neuroncore_rtl.run.sim.run_to_end import PULSE

__all__ = ["LiveRun"]

RESET = 16
"""Cycles of a harness before a round of images, about."""


@dataclass
class _Queue:
    """Records in an engine, the cycle of the last change, and the cycles with records until then."""

    count: int = 0
    since: int = 0
    busy: int = 0

    def change(self, by: int, cycle: int) -> None:
        if self.count:
            self.busy += cycle - self.since
        self.count, self.since = self.count + by, cycle

    def until(self, cycle: int) -> int:
        return self.busy + (max(cycle - self.since, 0) if self.count else 0)


@dataclass
class LiveRun:
    """What a device has done so far.

    Arguments:
        engines: names of the queues of each core; empty: the device is no core.
        core_bytes: bytes of HBM by core.
        records: records that will retire, of all cores; 0: not known.
        directory: folder of the run, set at its start.
    """

    engines: Sequence[str] = ()
    core_bytes: Mapping[int, int] = field(default_factory=dict)
    records: int = 0
    directory: Path | None = None

    cycles = host_bytes = retired = 0
    cycles_per_second = 0.0
    _seconds = 0.0
    _offset = _first = _last = 0

    def __post_init__(self):
        # The last queue counts the records of all engines of the core.
        self._queues = {core: [_Queue() for _ in (*self.engines, "any")] for core in self.core_bytes}
        self._places: dict[tuple[int, str], int] = {}

    def look(self) -> None:
        """Read what the simulator has written since the last look."""
        if self.directory is None:
            return
        with suppress(OSError, ValueError):  # not there yet, or half written
            cycles, seconds, size = map(float, (self.directory / PULSE).read_text().split())
            if seconds > self._seconds:
                self.cycles_per_second = (cycles - self.cycles) / (seconds - self._seconds)
                self.cycles, self._seconds, self.host_bytes = int(cycles), seconds, int(size)
        if self.engines:
            with suppress(OSError), (self.directory / "events").open("rb") as events:
                events.seek(self._offset)
                text, _, _ = events.read().rpartition(b"\n")
                self._offset += len(text) + bool(text)
                for line in text.decode().splitlines():
                    self._count(line)

    def _count(self, line: str) -> None:
        kind = line[0]
        if kind == "s":
            # The next image starts after a reset, which ends the records of a failed one.
            self._first = self._last
            for queue in chain(*self._queues.values()):
                queue.change(-queue.count, self._last)
        if kind not in "ipr":
            return
        _, core, queue, address, at = line.split()
        self._last = cycle = self._first + int(at)
        self.retired += kind != "i"
        queues, place = self._queues[int(core)], (int(core), address)
        if kind == "i":
            self._places[place] = int(queue)
        for number in () if kind == "p" else (self._places[place], -1):
            queues[number].change(1 if kind == "i" else -1, cycle)

    def done(self) -> float:
        """Return the part of the records that has retired; 0 if their number is not known."""
        return self.retired / self.records if self.records else 0.0

    def utilisation(self) -> dict[int, tuple[float, dict[str, float]]]:
        """Return for each core the share of cycles with a record in any of its engines, and in each of them."""
        now = max(self._last, self.cycles - RESET, 1)
        found = {}
        for core, queues in self._queues.items():
            *engines, whole = (queue.until(now) / now for queue in queues)
            found[core] = whole, dict(zip(self.engines, engines, strict=True))
        return found
