"""Timing of HBM and its ports, in groups of beats.

Each port reads in the order of addresses, one beat per cycle, and writes one beat per cycle at the same time. With a
bandwidth limit, all ports and directions share it beat by beat.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numba import njit

from neuroncore_rtl.golden.timing.calendar import new_calendar, slots
from neuroncore_rtl.golden.timing.events import Agenda
from neuroncore_rtl.spec.config import Config

__all__ = ["BurstWindow", "MemoryTiming", "Server", "TimedHbm"]


@dataclass(frozen=True, kw_only=True)
class MemoryTiming:
    """Latency and bandwidth of HBM.

    Arguments:
        latency: cycles from an address at a port, or the last beat written, to the response; at least 1.
        bandwidth: maximum bytes per cycle of all ports; 0 for the machine's `hbm_rate`.
    """

    latency: int = 64
    bandwidth: float = 0

    def __post_init__(self):
        if self.latency < 1:
            raise ValueError(f"latency must be at least 1, not {self.latency!r}")
        if self.bandwidth < 0:
            raise ValueError(f"bandwidth must be at least 0, not {self.bandwidth!r}")


class Server:
    """Pipeline stage that serves one item per cycle in order of arrival; `free` is its first idle cycle."""

    def __init__(self):
        self.free = 0

    def take(self, cycle: int, items: int = 1) -> int:
        """Reserve one cycle for each of `items` items that arrive from `cycle` on; return the cycle of the first."""
        begin = max(cycle, self.free)
        self.free = begin + items
        return begin


class BurstWindow:
    """Bursts of one requester, in order: one begins only when the burst `most` before it is over.

    The first beat of a burst follows its begin by `latency`; one beat per cycle.
    """

    def __init__(self, most: int, latency: int):
        self._latency, self._over, self._state = latency, np.zeros(most, np.int64), np.array([0, -1, 0])

    def take(self, cycle: int, cycles: int, bursts: int, beats: int) -> tuple[int, int, int]:
        """Begin bursts, spread over `cycles` from `cycle` on; return the last begin, and the first and last beat."""
        return _take(self._over, self._state, self._latency, cycle, cycles, bursts, beats)


@njit(cache=True)
def _take(over, state, latency, cycle, cycles, bursts, beats):
    number, before, free = state
    begin, first = max(cycle - 1, before), -1
    for n in range(bursts):
        place = (number + n) % len(over)
        begin = max(begin + cycles * (n + 1) // bursts - cycles * n // bursts, over[place])
        start = max(begin + latency, free)
        first = start if n == 0 else first
        free = start + beats * (n + 1) // bursts - beats * n // bursts
        over[place] = free - 1
    state[:] = number + bursts, begin, free
    return begin, first, free - 1


Call = Callable[[int, int], None]
"""Called with the cycles of first and last beat of a read, or of last beat and response of a write."""


class TimedHbm:
    """Timing model of HBM with all its ports."""

    BURSTS = 64
    """Maximum read bursts of a port from the acceptance of their addresses to their last beats."""

    def __init__(self, config: Config, timing: MemoryTiming, agenda: Agenda):
        self.latency = timing.latency
        self._agenda = agenda
        bandwidth = timing.bandwidth or config.hbm_rate
        self._share = config.hbm_bytes / bandwidth if bandwidth else 0
        ports = range(config.hbm_ports)
        self._reads = [BurstWindow(self.BURSTS, timing.latency) for _ in ports]
        self.writes = [Server() for _ in ports]
        self.packets = Server(), Server()  # begins of packets that all DMA engines read and write
        self._limited = _Limited(agenda, self._share, config.hbm_ports) if self._share else None

    def read(self, port: int, cycle: int, beats: int, bursts: int, call: Call, apart: int = 0) -> int:
        """Request beats in bursts, the first from `cycle` on, the last at least `apart` cycles later.

        Return the cycle in which the last address is accepted.

        `call` is called with the cycles of the first and last beat, immediately if they are known.
        """
        asked, first, last = self._reads[port].take(cycle, bursts + apart, bursts, beats)
        if self._limited:
            self._limited.add(port, 0, first, beats, call)
        else:
            call(first, last)
        return asked

    def write(self, port: int, cycle: int, beats: int, call: Callable[[int], None] | None) -> None:
        """Write beats, from `cycle` on at the earliest; `call`, if any, is called with the cycle of the response."""
        first = self.writes[port].take(cycle, beats)
        answer = (lambda _, last: call(last)) if call else (lambda *_: None)
        if self._limited:
            self._limited.add(port, 1, first + self.latency, beats, answer)
        else:
            answer(0, first + beats - 1 + self.latency)


class _Limited:
    """Arbiter of HBM under the shared bandwidth limit: groups of beats, all ports and directions round robin.

    One beat of any port uses the whole bandwidth for `share` cycles.
    """

    def __init__(self, agenda: Agenda, share: float, ports: int):
        self._agenda, self._share, self._slots = agenda, share, new_calendar()
        self._waiting: list[tuple[deque, deque]] = [(deque(), deque()) for _ in range(ports)]
        self._busy = [[False, False] for _ in range(ports)]

    def add(self, port: int, way: int, due: int, beats: int, call: Call) -> None:
        """Append a group of beats, none before cycle `due`; `way` is 0 for a read, 1 for a write."""
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
