"""List scheduler: reorders the instructions of a program so that engines stay busy.

In the order of the algorithm an engine often stalls while it has other work. The scheduler keeps this order only where
dependences require it. It simulates the machine by estimates (`spec.estimate`). A unit is one instruction, or
several that must stay together. Whenever a queue is free, it starts the ready unit with the highest priority:

* The priority of a unit is its latest start. A unit is due when the busiest engine, without stalls, would have finished
  all work up to this unit, and early enough for all units that depend on it. Therefore the first unit of a tile starts
  while the previous tile is still in flight: it is due earlier by the length of the longest chain of dependences
  through the tile. A load is due only when its first consumer starts, wherever it stands in the program.
* A queue does not stall for the most urgent unit while another one is ready. So loads are prefetched as far as memory
  allows (`kernels.program.memory_pressure`).

Every order that satisfies the dependences gives the same results, so a poor estimate costs only cycles.
"""

from collections.abc import Mapping, Sequence
from heapq import heappop, heappush
from itertools import chain, groupby
from math import inf

from neuroncore_rtl.kernels.program.allocator import Allocator
from neuroncore_rtl.kernels.program.entries import ProgramStep
from neuroncore_rtl.kernels.program.memory_pressure import MemoryPressure
from neuroncore_rtl.kernels.program.units import SchedulingUnit, units_of
from neuroncore_rtl.spec import isa
from neuroncore_rtl.spec.estimate import Estimate
from neuroncore_rtl.spec.isa import Engine, Storage

__all__ = ["schedule"]

AHEAD = 4096
"""Maximum distance, in units, by which a unit may overtake the oldest one that has not started."""

_Heap = list[tuple[float, int]]
"""Ready list: the latest start and the number of each unit."""


def schedule(steps: Sequence[ProgramStep], space: Allocator, shares: Mapping[Storage, float]) -> list[ProgramStep]:
    """Return the steps in a new order with the same results; every copy gets a queue.

    Sections remain in order. At most the share of each memory in `shares` is filled.
    """
    touched = [step.touched for step in steps]
    sections: dict[int, int] = {}
    always = {
        number
        for step, own in zip(steps, touched, strict=True)
        for number in own
        if sections.setdefault(number, step.section) != step.section
    }
    found: list[ProgramStep] = []
    for _, pairs in groupby(zip(steps, touched, strict=True), lambda pair: pair[0].section):
        own, buffers = zip(*pairs, strict=True)
        found += _Schedule(own, buffers, always, space, shares).order()
    return found


class _Schedule:
    def __init__(
        self,
        steps: Sequence[ProgramStep],
        touched: Sequence[set[int]],
        always: set[int],
        space: Allocator,
        shares: Mapping[Storage, float],
    ):
        self._steps, self._config = steps, space.config
        self._units = units_of(steps, self._config)
        buffers = [sorted({*chain(*(touched[number] for number in unit.steps))} - always) for unit in self._units]
        self._room = MemoryPressure(buffers, always, space, shares)
        self._copying = isa.queues_of(Engine.DMA, self._config)
        self._starts = self._latest_starts()
        # Ready lists per queue, and of all DMA queues together (None): units that allocate memory, and the others.
        queues = range(isa.queue_count(self._config))
        self._ready: dict[int | None, tuple[_Heap, _Heap]] = {queue: ([], []) for queue in (*queues, None)}
        self._free = set(queues)
        self._awake: set[int] = set()  # queues to search for a ready unit
        self._blocked: set[int] = set()  # queues with ready units that do not fit in memory
        self._events: list[tuple[int, int, int]] = []  # time; a unit that completes, or -1 and a free queue
        self._ports = [[0, 0] for _ in range(self._config.hbm_ports)]  # when loads and stores of the port end
        self._started = [False] * len(self._units)
        self._oldest = self._now = 0

    def order(self) -> list[ProgramStep]:
        found: list[ProgramStep] = []
        for unit in self._units:
            self._release(unit)
        while self._oldest < len(self._units):
            found += self._begin()
            if not self._events:
                found += self._in_order()
            self._now = self._events[0][0]
            while self._events and self._events[0][0] == self._now:
                _, number, queue = heappop(self._events)
                if number < 0:
                    self._free.add(queue)
                    self._awake.add(queue)
                else:
                    self._finish(self._units[number])
        return found

    def _begin(self) -> list[ProgramStep]:
        found: list[ProgramStep] = []
        while awake := self._awake & self._free:
            self._awake = set()
            for queue in sorted(awake, key=self._turn):
                unit = self._next(queue)
                if unit is not None:
                    self._free.remove(queue)
                    self._start(unit, queue)
                    own = [self._steps[number] for number in unit.steps]
                    found += own if unit.queue is not None else [step._replace(queue=queue) for step in own]
        return found

    def _latest_starts(self) -> list[float]:
        ports = self._config.hbm_ports
        work: dict[tuple[int | None, bool], float] = {}
        due, latest = [], 0.0
        for unit in self._units:
            kind = None if unit.copies else unit.queue, unit.stores
            work[kind] = work.get(kind, 0.0) + unit.cycles / (ports if unit.copies else 1)
            if unit.loads and unit.after:
                due.append(inf)
                continue
            latest = max(latest, work[kind])
            due.append(latest)
        for unit in reversed(self._units):
            # A unit of several steps may depend on a unit with a higher number; such edges are ignored here.
            later = (due[other.number] for other in unit.after if other.number > unit.number)
            due[unit.number] = min(due[unit.number], min(later, default=latest)) - unit.cycles - unit.delay
        return due

    def _turn(self, queue: int) -> tuple[int, int]:
        return (sum(self._port(queue)) if queue in self._copying else 0), queue

    def _port(self, queue: int) -> list[int]:
        return self._ports[(queue - self._copying.start) % len(self._ports)]

    def _release(self, unit: SchedulingUnit) -> None:
        if not unit.before:
            heaps = self._ready[unit.queue]
            self._awake.update((unit.queue,) if unit.queue is not None else self._copying)
            heappush(heaps[not self._room.needed(unit.number)], (self._starts[unit.number], unit.number))

    def _next(self, queue: int) -> SchedulingUnit | None:
        queues = (queue, None) if queue in self._copying else (queue,)
        ready = []
        if self._oldest < len(self._units):
            oldest = self._units[self._oldest]
            if not oldest.before and oldest.queue in queues:
                ready.append((self._starts[oldest.number], oldest.number))
        for heap in (heap for one in queues for heap in self._ready[one]):
            while heap and self._started[heap[0][1]]:
                heappop(heap)
            if heap:
                unit = self._units[heap[0][1]]
                if unit.number <= self._oldest + AHEAD and self._room.fits(unit.number, self._oldest, unit.loads):
                    ready.append(heap[0])
                else:
                    self._blocked.add(queue)
        return self._units[min(ready)[1]] if ready else None

    def _start(self, unit: SchedulingUnit, queue: int) -> None:
        begin = self._now
        if unit.copies:
            port = self._port(queue)
            begin = max(begin, port[unit.stores])
            port[unit.stores] = begin + unit.cycles
        over = begin + unit.cycles
        least = self._now + Estimate.OVERLAP if unit.copies else over
        heappush(self._events, (max(over, least), -1, queue))
        self._issue(unit, over + unit.delay)

    def _issue(self, unit: SchedulingUnit, over: int) -> None:
        heappush(self._events, (over, unit.number, -1))
        self._room.take(unit.number, self._oldest, unit.loads)
        self._started[unit.number] = True
        while self._oldest < len(self._units) and self._started[self._oldest]:
            self._room.pass_by(self._oldest)
            self._oldest += 1
            self._wake()

    def _finish(self, unit: SchedulingUnit) -> None:
        self._room.give(unit.number)
        self._wake()
        for other in unit.after:
            other.before -= 1
            self._release(other)

    def _in_order(self) -> list[ProgramStep]:
        """Start units that wait for each other because their steps interleave, until every started unit is complete.

        Program order is always legal.
        """
        places = {number: unit for unit in self._units if not self._started[unit.number] for number in unit.steps}
        begun, found, end = [], [], self._units[self._oldest].steps[0]
        for number in sorted(places):
            if number > end:
                break
            unit = places[number]
            if number == unit.steps[0]:
                begun.append(unit)
            found.append(self._steps[number])
            end = max(end, unit.steps[-1])
        for unit in begun:
            self._issue(unit, self._now + unit.cycles + unit.delay)
        return found

    def _wake(self) -> None:
        self._awake |= self._blocked
        self._blocked.clear()
