"""Register between a queue and its engine on a machine with `port_latency`. It holds one record."""

from neuroncore_rtl.golden.timing.events import Agenda
from neuroncore_rtl.golden.timing.prediction import Timed
from neuroncore_rtl.golden.timing.queue import EngineModel, Queue, offer
from neuroncore_rtl.spec.isa import Record

__all__ = ["PortRegister"]


class PortRegister:
    """Register of one record; has the interface of an engine towards the queue, and of a queue towards the engine."""

    queue: Queue

    def __init__(self, agenda: Agenda, model: EngineModel):
        self._agenda, self._model = agenda, model
        model.queue = self
        self._held: tuple[Record, Timed] | None = None

    def ready(self) -> int | None:
        """Return the first cycle in which the register accepts an instruction, or None if unknown."""
        return 0 if self._held is None else None

    def start(self, record: Record, timed: Timed) -> None:
        """Accept an instruction in this cycle."""
        self._held = record, timed
        self._agenda.at(self._agenda.now + 1, self.engine_ready)

    def engine_ready(self) -> None:
        """Offer the held record to the engine."""
        if self._held is not None:
            offer(self._agenda, self._model, self.engine_ready, self._give)

    def _give(self) -> None:
        held, self._held = self._held, None
        assert held is not None
        self._model.start(*held)
        self._agenda.at(self._agenda.now + 1, self.queue.engine_ready)

    def retire(self, record: Record, timed: Timed) -> None:
        """Tell the queue that the engine finishes a record in this cycle."""
        self.queue.retire(record, timed)
