"""Timing of a queue: records are prefetched, wait for semaphores, are issued, and update semaphores when retired."""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from neuroncore_rtl.golden.timing.events import Agenda
from neuroncore_rtl.golden.timing.fetch import Fetcher
from neuroncore_rtl.golden.timing.prediction import Timed
from neuroncore_rtl.golden.timing.semaphores import Semaphores
from neuroncore_rtl.spec import timing
from neuroncore_rtl.spec.isa import RECORD_BYTES, Record
from neuroncore_rtl.spec.isa.engine import QUEUE_BLOCKS

__all__ = ["EngineModel", "Queue", "offer"]


class EngineModel(Protocol):
    """An engine as its queue sees it.

    Attributes:
        queue: set by the queue. The engine calls its `retire` for a finished record, and its `engine_ready` when it
            accepts instructions again.
    """

    queue: Any

    def ready(self) -> int | None:
        """Return the first cycle in which the engine accepts an instruction, or None if unknown."""

    def start(self, record: Record, timed: Timed) -> None:
        """Accept an instruction in this cycle."""


def offer(agenda: Agenda, model: EngineModel, again: Callable[[], None], give: Callable[[], None]) -> None:
    """Call `give` if the engine `model` accepts an instruction in this cycle.

    Otherwise schedule `again` for the cycle in which the engine will accept one, if that cycle is known.
    """
    ready = model.ready()
    if ready is not None:
        give() if ready <= agenda.now else agenda.at(ready, again)


class Queue:
    """Timing model of one queue of records.

    `ahead` is the maximum number of records that the queue prefetches. `trace` receives each issued record.

    Attributes:
        idle_since: cycle since which no record is pending.
        on_place, on_idle: called when a block slot becomes free, and when no record is pending; or None.
    """

    def __init__(
        self,
        number: int,
        ahead: int,
        agenda: Agenda,
        fetcher: Fetcher,
        semaphores: Semaphores,
        model: EngineModel,
        trace: list[Timed],
    ):
        self.number, self._ahead = number, ahead
        self._agenda, self._fetcher, self._semaphores = agenda, fetcher, semaphores
        self._model, self._trace = model, trace
        model.queue = self
        self._blocks: deque[tuple[int, Sequence[Record]]] = deque()
        self._requested = 0  # requested records of the first block
        self._prefetched: deque[tuple[Record, Timed]] = deque()
        self._requesting = self._offering = self._blocked = False
        self._in_flight = 0
        self._look_from = 0
        self.pending, self.idle_since = 0, 0
        self.waits = dict.fromkeys(("fetch", "semaphore", "engine"), 0)
        self.on_place: Callable[[], None] | None = None
        self.on_idle: Callable[[], None] | None = None

    @property
    def places(self) -> int:
        """Number of free slots for blocks of records."""
        return QUEUE_BLOCKS - len(self._blocks)

    def ring(self, address: int, records: Sequence[Record]) -> None:
        """Accept the block of records that a doorbell write of this cycle starts."""
        self._blocks.append((address, records))
        self.pending += len(records)
        self._request_at(self._agenda.now + 1)

    def _request_at(self, cycle: int) -> None:
        if not self._requesting and self._blocks and len(self._prefetched) < self._ahead:
            self._requesting = True
            self._agenda.at(cycle, self._request)

    def _request(self) -> None:
        address, records = self._blocks[0]
        record = records[self._requested]
        timed = Timed(self.number, address + self._requested * RECORD_BYTES)
        self._prefetched.append((record, timed))

        def arrive(cycle: int) -> None:
            timed.fetched = cycle
            if self._prefetched[0][1] is timed:
                self._look_at(cycle)

        self._fetcher.fetch(self._accept_request, arrive)

    def _accept_request(self) -> None:
        self._requesting = False
        self._requested += 1
        if self._requested == len(self._blocks[0][1]):
            self._requested = 0
            self._blocks.popleft()
            if self.on_place:
                self.on_place()
        self._request_at(self._agenda.now + 1)

    def _look_at(self, cycle: int) -> None:
        self._agenda.at(max(cycle, self._look_from), self._look)

    def _look(self) -> None:
        record, timed = self._prefetched[0]
        if self._offering or timed.ready >= 0:
            return
        if not self._semaphores.hold(record, self._look):
            return
        if self._in_flight == timing.QUEUE_RECORDS:
            self._blocked = True
            return
        timed.ready = self._agenda.now
        if record.instruction.lane is None:
            self._agenda.at(self._update(timed.ready + 1, record), self._issue)
            return
        self._offering = True
        self._agenda.at(timed.ready + 1, self.engine_ready)

    def engine_ready(self) -> None:
        """Offer the record at the head of the queue to the engine."""
        if self._offering:
            offer(self._agenda, self._model, self.engine_ready, self._issue)

    def _issue(self) -> None:
        now = self._agenda.now
        record, timed = self._prefetched.popleft()
        self._offering = False
        timed.issued = now
        before = self._look_from
        self.waits["fetch"] += max(0, timed.fetched - before)
        self.waits["semaphore"] += timed.ready - max(before, timed.fetched)
        self.waits["engine"] += now - timed.ready - 1
        self._trace.append(timed)
        self._in_flight += 1
        self._look_from = now + 1
        if record.instruction.lane is None:
            timed.retired = now
            self._agenda.at(now + 1, self._finish)
        else:
            self._model.start(record, timed)
        self._request_at(now + 1)
        if self._prefetched and self._prefetched[0][1].fetched >= 0:
            self._look_at(self._prefetched[0][1].fetched)

    def retire(self, record: Record, timed: Timed) -> None:
        """Retire a record, which the engine finishes in this cycle."""
        timed.retired = self._agenda.now
        self._agenda.at(self._update(timed.retired + 1, record) + 1, self._finish)

    def _update(self, cycle: int, record: Record) -> int:
        taken = cycle
        for number, update in enumerate(record.updates):
            taken = self._semaphores.update(taken + (number > 0), update)
        return taken

    def _finish(self) -> None:
        self._in_flight -= 1
        self.pending -= 1
        if not self.pending:
            self.idle_since = self._agenda.now
            if self.on_idle:
                self.on_idle()
        if self._blocked:
            self._blocked = False
            self._look()
