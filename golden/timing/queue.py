"""A queue in time: records are fetched ahead, wait for semaphores, go to the engine, and then do their updates."""

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
        queue: set by the queue; told of what has finished by `Queue.retire`, and by `Queue.engine_ready` when the
            engine, full before, takes the next instruction.
    """

    queue: Any

    def ready(self) -> int | None:
        """Return the first cycle in which it takes an instruction; None: not known yet."""

    def start(self, record: Record, timed: Timed) -> None:
        """Take an instruction in this cycle."""


def offer(agenda: Agenda, model: EngineModel, again: Callable[[], None], give: Callable[[], None]) -> None:
    """Give an engine an instruction if it takes one in this cycle; else do it again when it will, if that is known."""
    ready = model.ready()
    if ready is not None:
        give() if ready <= agenda.now else agenda.at(ready, again)


class Queue:
    """One queue.

    Arguments:
        number: which. ahead: records that it fetches before their turn.
        agenda, fetcher, semaphores: of the core.
        model: its engine.
        trace: gets each record as it is issued.

    Attributes:
        left: records that were rung and have not left.
        idle_since: the cycle from which on nothing is left, if so.
        waits: cycles by cause.
        on_place, on_idle: called when a block was fetched, and when nothing is left, if somebody asked for it.
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
        self._asked = 0  # of the first block
        self._coming: deque[tuple[Record, Timed]] = deque()
        self._asking = self._offering = self._blocked = False
        self._flying = 0
        self._may_look = 0
        self.left, self.idle_since = 0, 0
        self.waits = dict.fromkeys(("fetch", "semaphore", "engine"), 0)
        self.on_place: Callable[[], None] | None = None
        self.on_idle: Callable[[], None] | None = None

    @property
    def places(self) -> int:
        """Blocks that it takes without waiting."""
        return QUEUE_BLOCKS - len(self._blocks)

    def ring(self, address: int, records: Sequence[Record]) -> None:
        """Take a block in this cycle."""
        self._blocks.append((address, records))
        self.left += len(records)
        self._ask_at(self._agenda.now + 1)

    def _ask_at(self, cycle: int) -> None:
        if not self._asking and self._blocks and len(self._coming) < self._ahead:
            self._asking = True
            self._agenda.at(cycle, self._ask)

    def _ask(self) -> None:
        address, records = self._blocks[0]
        record = records[self._asked]
        timed = Timed(self.number, address + self._asked * RECORD_BYTES)
        self._coming.append((record, timed))

        def come(cycle: int) -> None:
            timed.fetched = cycle
            if self._coming[0][1] is timed:
                self._look_at(cycle)

        self._fetcher.fetch(self._taken, come)

    def _taken(self) -> None:
        """Go on when a request for a record is taken."""
        self._asking = False
        self._asked += 1
        if self._asked == len(self._blocks[0][1]):
            self._asked = 0
            self._blocks.popleft()
            if self.on_place:
                self.on_place()
        self._ask_at(self._agenda.now + 1)

    def _look_at(self, cycle: int) -> None:
        self._agenda.at(max(cycle, self._may_look), self._look)

    def _look(self) -> None:
        """Look at the semaphores of the next record."""
        record, timed = self._coming[0]
        if self._offering or timed.ready >= 0:
            return
        if not self._semaphores.hold(record, self._look):
            return
        if self._flying == timing.QUEUE_RECORDS:
            self._blocked = True
            return
        timed.ready = self._agenda.now
        if record.instruction.lane is None:
            self._agenda.at(self._update(timed.ready + 1, record), self._issue)
            return
        self._offering = True
        self._agenda.at(timed.ready + 1, self.engine_ready)

    def engine_ready(self) -> None:
        """Offer the next record to the engine."""
        if self._offering:
            offer(self._agenda, self._model, self.engine_ready, self._issue)

    def _issue(self) -> None:
        now = self._agenda.now
        record, timed = self._coming.popleft()
        self._offering = False
        timed.issued = now
        before = self._may_look
        self.waits["fetch"] += max(0, timed.fetched - before)
        self.waits["semaphore"] += timed.ready - max(before, timed.fetched)
        self.waits["engine"] += now - timed.ready - 1
        self._trace.append(timed)
        self._flying += 1
        self._may_look = now + 1
        if record.instruction.lane is None:
            timed.retired = now
            self._agenda.at(now + 1, self._leave)
        else:
            self._model.start(record, timed)
        self._ask_at(now + 1)
        if self._coming and self._coming[0][1].fetched >= 0:
            self._look_at(self._coming[0][1].fetched)

    def retire(self, record: Record, timed: Timed) -> None:
        """Note that the engine finishes a record in this cycle."""
        timed.retired = self._agenda.now
        self._agenda.at(self._update(timed.retired + 1, record) + 1, self._leave)

    def _update(self, cycle: int, record: Record) -> int:
        """Make a record's updates from a cycle on; return that of the last one, or this if there are none."""
        taken = cycle
        for number, update in enumerate(record.updates):
            taken = self._semaphores.update(taken + (number > 0), update)
        return taken

    def _leave(self) -> None:
        self._flying -= 1
        self.left -= 1
        if not self.left:
            self.idle_since = self._agenda.now
            if self.on_idle:
                self.on_idle()
        if self._blocked:
            self._blocked = False
            self._look()
