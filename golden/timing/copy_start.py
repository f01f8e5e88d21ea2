"""Time from the issue of a copy to its start in the DMA engine."""

from collections import deque

from neuroncore_rtl.golden.timing.events import Agenda
from neuroncore_rtl.golden.timing.prediction import Timed
from neuroncore_rtl.golden.timing.queue import EngineModel, Queue, offer
from neuroncore_rtl.spec.isa import Record

__all__ = ["CopyStart"]


class CopyStart:
    """Delay of records; has the interface of an engine towards the queue, and of a queue towards the engine."""

    queue: Queue

    def __init__(self, agenda: Agenda, cycles: int, model: EngineModel):
        self._agenda, self._cycles, self._model = agenda, cycles, model
        model.queue = self
        self._held: deque[tuple[Record, Timed, int]] = deque()

    def ready(self) -> int | None:
        """Return the first cycle in which an instruction is accepted: any cycle."""
        return 0

    def start(self, record: Record, timed: Timed) -> None:
        """Accept an instruction in this cycle."""
        due = self._agenda.now + self._cycles
        self._held.append((record, timed, due))
        self._agenda.at(due, self.engine_ready)

    def engine_ready(self) -> None:
        """Offer the oldest record to the engine if it has been held long enough."""
        if self._held and self._held[0][2] <= self._agenda.now:
            offer(self._agenda, self._model, self.engine_ready, self._give)

    def _give(self) -> None:
        record, timed, _ = self._held.popleft()
        self._model.start(record, timed)

    def retire(self, record: Record, timed: Timed) -> None:
        """Tell the queue that the engine finishes a record in this cycle."""
        self.queue.retire(record, timed)
