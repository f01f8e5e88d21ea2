"""HBM behind its ports, and the line ports of SBUF and PSUM: who is served when, in groups of beats.

A port delivers what is read in the order of its addresses, a beat a cycle, and takes a written beat beside it. Where
all of HBM has a limit, every beat of every port and direction takes its share of it in turn.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from neuroncore_rtl.golden.timing.calendar import new_calendar, slots
from neuroncore_rtl.golden.timing.events import Agenda
from neuroncore_rtl.spec.config import Config

__all__ = ["MemoryTiming", "Server", "TimedHbm"]


@dataclass(frozen=True, kw_only=True)
class MemoryTiming:
    """How HBM behaves.

    Arguments:
        latency: cycles from an address at a port, or the last beat written, to the response; at least 1.
        bandwidth: bytes a cycle that it moves at most; 0: what its ports carry.

    Raises:
        ValueError: if one of them is too small.
    """

    latency: int = 64
    bandwidth: float = 0

    def __post_init__(self):
        if self.latency < 1:
            raise ValueError(f"latency must be at least 1, not {self.latency!r}")
        if self.bandwidth < 0:
            raise ValueError(f"bandwidth must be at least 0, not {self.bandwidth!r}")


class Server:
    """Serves one item a cycle in the order of arrival.

    Attributes:
        free: the first cycle in which it has nothing to do.
    """

    def __init__(self):
        self.free = 0

    def take(self, cycle: int, items: int = 1) -> int:
        """Return the cycle in which it begins with items that come in `cycle`, one a cycle."""
        begin = max(cycle, self.free)
        self.free = begin + items
        return begin


Call = Callable[[int, int], None]
"""Told of the first and the last beat that was read, or of the last beat written and its answer."""


class TimedHbm:
    """All ports.

    Arguments:
        config: the machine's parameters.
        timing: how it behaves.
        agenda: what happens when.
    """

    BURSTS = 64
    """Bursts that a port may owe."""

    def __init__(self, config: Config, timing: MemoryTiming, agenda: Agenda):
        self.latency = timing.latency
        self._agenda = agenda
        self._share = config.hbm_bytes / timing.bandwidth if timing.bandwidth else 0
        ports = range(config.hbm_ports)
        self.addresses, self.reads, self.writes = ([Server() for _ in ports] for _ in range(3))
        self._owed: list[deque[tuple[int, int]]] = [deque() for _ in ports]
        self._count = [0 for _ in ports]
        self._limited = _Limited(agenda, self._share, config.hbm_ports) if self._share else None

    def read(self, port: int, cycle: int, beats: int, bursts: int, call: Call) -> int:
        """Ask for beats; return when the last address is taken.

        Arguments:
            port: its number.
            cycle: in which the first address is at the port at the earliest.
            beats, bursts: that are asked for.
            call: told of the first and the last beat at the port, now if that is known.
        """
        if self._limited:
            asked = self.addresses[port].take(cycle, bursts)
            self._limited.add(port, 0, asked + self.latency, beats, call)
            return asked + bursts - 1
        owed = self._owed[port]
        while owed and (owed[0][0] < cycle or self._count[port] + bursts > self.BURSTS):
            done, gone = owed.popleft()
            cycle = max(cycle, done + 1) if self._count[port] + bursts > self.BURSTS else cycle
            self._count[port] -= gone
        asked = self.addresses[port].take(cycle, bursts)
        first = self.reads[port].take(asked + self.latency, beats)
        owed.append((first + beats - 1, bursts))
        self._count[port] += bursts
        call(first, first + beats - 1)
        return asked + bursts - 1

    def write(self, port: int, cycle: int, beats: int, call: Callable[[int], None] | None) -> None:
        """Give beats.

        Arguments:
            port, cycle, beats: likewise.
            call: told of the answer's cycle; None: nobody waits for it.
        """
        first = self.writes[port].take(cycle, beats)
        answer = (lambda _, last: call(last)) if call else (lambda *_: None)
        if self._limited:
            self._limited.add(port, 1, first + self.latency, beats, answer)
        else:
            answer(0, first + beats - 1 + self.latency)


class _Limited:
    """What is read and written where all ports together have a limit: in groups, in turns of reading and writing.

    Arguments:
        agenda: what happens when.
        share: cycles of a beat.
        ports: how many.
    """

    def __init__(self, agenda: Agenda, share: float, ports: int):
        self._agenda, self._share, self._slots = agenda, share, new_calendar()
        self._waiting: list[tuple[deque, deque]] = [(deque(), deque()) for _ in range(ports)]
        self._busy = [[False, False] for _ in range(ports)]

    def add(self, port: int, way: int, due: int, beats: int, call: Call) -> None:
        """Add beats that are due in a cycle."""
        self._waiting[port][way].append((due, beats, call))
        if not self._busy[port][way]:
            self._busy[port][way] = True
            self._agenda.at(max(due, self._agenda.now), self._serve, port, way)

    def _serve(self, port: int, way: int) -> None:
        waiting = self._waiting[port][way]
        _, beats, call = waiting.popleft()
        first = self._agenda.now
        last = max(first + beats - 1, int(slots(self._slots, first, beats, self._share)))
        call(first, last)
        if waiting:
            self._agenda.at(max(last + 1, waiting[0][0]), self._serve, port, way)
        else:
            self._agenda.at(last + 1, self._rest, port, way)

    def _rest(self, port: int, way: int) -> None:
        waiting = self._waiting[port][way]
        if waiting:
            self._agenda.at(max(self._agenda.now, waiting[0][0]), self._serve, port, way)
        else:
            self._busy[port][way] = False
