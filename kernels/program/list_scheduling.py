"""List scheduling: the order of a program's instructions, chosen so that engines are busy.

Kernels append in the order of the algorithm, in which an engine would often wait for another one while there is other
work. Here that order is kept only where bytes, or the state of an engine, make it necessary. Time goes by on a model of
the machine (:mod:`spec.estimate`), and whenever an engine is free it takes what is the most urgent of all
that is ready:

* A step is *due* when the busiest engine would be through with everything up to it, if it never waited; and early
  enough for what comes after it. So a tile's first steps are done while the tile before is still under way, as many
  cycles ahead as the longest way through its steps takes. A load is due when the first step is that needs it, wherever
  it stands among the other loads.
* An engine does not wait for the most urgent step if another one is ready: so loads run ahead, as far as there is room
  for them (:mod:`kernels.program.memory_pressure`).

Any order that is kept to leaves the same in every memory, so what is estimated badly costs cycles and nothing else.
"""

from collections.abc import Sequence
from heapq import heappop, heappush
from itertools import chain, groupby
from math import inf

from neuroncore_rtl.kernels.program.allocator import Allocator
from neuroncore_rtl.kernels.program.entries import ProgramStep
from neuroncore_rtl.kernels.program.memory_pressure import MemoryPressure
from neuroncore_rtl.kernels.program.units import SchedulingUnit, units_of
from neuroncore_rtl.spec import isa
from neuroncore_rtl.spec.estimate import Estimate
from neuroncore_rtl.spec.isa import Engine

__all__ = ["scheduled"]

AHEAD = 4096
"""Units by which one may go before its turn."""

_Heap = list[tuple[float, int]]
"""Units that are ready: when each has to start, and its number."""


def scheduled(steps: Sequence[ProgramStep], space: Allocator, share: float) -> list[ProgramStep]:
    """Return the steps in another order that leaves the same in every memory, copies with their queues.

    Arguments:
        steps: in program order; sections keep theirs.
        space: which named the tensors.
        share: of each memory, that steps before their turn may fill.
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
        found += _Schedule(own, buffers, always, space, share).order()
    return found


class _Schedule:
    """The order of one section's steps."""

    def __init__(
        self,
        steps: Sequence[ProgramStep],
        touched: Sequence[set[int]],
        always: set[int],
        space: Allocator,
        share: float,
    ):
        self._steps, self._config = steps, space.config
        self._units = units_of(steps, self._config)
        buffers = [sorted({*chain(*(touched[number] for number in unit.steps))} - always) for unit in self._units]
        self._room = MemoryPressure(buffers, always, space, share)
        self._copying = isa.queues_of(Engine.DMA, self._config)
        self._starts = self._latest_starts()
        # Of each queue, and of any DMA engine's (None): units that need room, and those that do not.
        queues = range(isa.queue_count(self._config))
        self._ready: dict[int | None, tuple[_Heap, _Heap]] = {queue: ([], []) for queue in (*queues, None)}
        self._free = set(queues)
        self._awake: set[int] = set()  # queues that may find something new
        self._blocked: set[int] = set()  # queues that found nothing for which there is room
        self._events: list[tuple[int, int, int]] = []  # time; a unit that is over, or -1 and a queue that is free
        self._ports = [[0, 0] for _ in range(self._config.hbm_ports)]  # when loads and stores there are over
        self._started = [False] * len(self._units)
        self._oldest = self._now = 0

    def order(self) -> list[ProgramStep]:
        """Return the steps in their order."""
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
        """Let units begin wherever a queue is free; return their steps."""
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
        """Return when each unit has to start, so that the busiest engine need not wait."""
        ports = self._config.hbm_ports
        work: dict[tuple[int | None, bool], float] = {}
        due, latest = [], 0.0
        for unit in self._units:
            kind = None if unit.copies else unit.queue, unit.stores
            work[kind] = work.get(kind, 0.0) + unit.cycles / (ports if unit.copies else 1)
            if unit.copies and not unit.stores and unit.after:
                due.append(inf)
                continue
            latest = max(latest, work[kind])
            due.append(latest)
        for unit in reversed(self._units):
            # A unit may come after one that begins behind it; what stays together there is not looked at.
            later = (due[other.number] for other in unit.after if other.number > unit.number)
            due[unit.number] = min(due[unit.number], min(later, default=latest)) - unit.cycles - unit.delay
        return due

    def _turn(self, queue: int) -> tuple[int, int]:
        """Return where a queue is among those that are free: of DMA engines the ones whose ports have the least to do
        go first."""
        return (sum(self._port(queue)) if queue in self._copying else 0), queue

    def _port(self, queue: int) -> list[int]:
        return self._ports[(queue - self._copying.start) % len(self._ports)]

    def _release(self, unit: SchedulingUnit) -> None:
        """Note that a unit is ready, if it is."""
        if not unit.before:
            heaps = self._ready[unit.queue]
            self._awake.update((unit.queue,) if unit.queue is not None else self._copying)
            heappush(heaps[not self._room.needed(unit.number)], (self._starts[unit.number], unit.number))

    def _next(self, queue: int) -> SchedulingUnit | None:
        """Return the most urgent unit that a free queue may go on with; None: there is none."""
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
                if heap[0][1] <= self._oldest + AHEAD and self._room.fits(heap[0][1], self._oldest):
                    ready.append(heap[0])
                else:
                    self._blocked.add(queue)
        return self._units[min(ready)[1]] if ready else None

    def _start(self, unit: SchedulingUnit, queue: int) -> None:
        """Let a unit begin on a queue."""
        begin = self._now
        if unit.copies:
            port = self._port(queue)
            begin = max(begin, port[unit.stores])
            port[unit.stores] = begin + unit.cycles
        over = begin + unit.cycles
        least = self._now + Estimate.OVERLAP if unit.copies else over
        heappush(self._events, (max(over, least), -1, queue))
        self._run(unit, over + unit.delay)

    def _run(self, unit: SchedulingUnit, over: int) -> None:
        """Let a unit begin, and be over in a cycle."""
        heappush(self._events, (over, unit.number, -1))
        self._room.take(unit.number, self._oldest)
        self._started[unit.number] = True
        while self._oldest < len(self._units) and self._started[self._oldest]:
            self._room.pass_by(self._oldest)
            self._oldest += 1
            self._wake()

    def _finish(self, unit: SchedulingUnit) -> None:
        """Note that a unit is over."""
        self._room.give(unit.number)
        self._wake()
        for other in unit.after:
            other.before -= 1
            self._release(other)

    def _in_order(self) -> list[ProgramStep]:
        """Let units begin that wait for each other, by way of what lies between their steps; return these in program
        order, which is always right, up to where nothing that was begun is left."""
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
            self._run(unit, self._now + unit.cycles + unit.delay)
        return found

    def _wake(self) -> None:
        """Note that there may be room for what there was none for."""
        self._awake |= self._blocked
        self._blocked.clear()
