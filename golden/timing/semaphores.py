"""Timing of semaphores: one update per cycle, which wakes waiting records in the cycle in which it takes effect."""

from collections import defaultdict
from collections.abc import Callable, Iterable

from neuroncore_rtl.golden.timing.events import Agenda
from neuroncore_rtl.golden.timing.memory import Server
from neuroncore_rtl.spec.isa import Record, Update, UpdateOp

__all__ = ["Semaphores"]


class Semaphores:
    """Timing model of a core's semaphores."""

    def __init__(self, agenda: Agenda):
        self._agenda, self._turn = agenda, Server()
        self._values: dict[int, int] = defaultdict(int)
        self._waiting: dict[int, list[Callable[[], None]]] = defaultdict(list)

    def hold(self, record: Record, call: Callable[[], None]) -> bool:
        """Return whether all waits of a record hold.

        If not, call `call` when the first semaphore below its minimum has been updated.
        """
        for wait in record.waits:
            if self._values[wait.semaphore] < wait.value:
                self._waiting[wait.semaphore].append(call)
                return False
        return True

    def update(self, cycle: int, update: Update) -> int:
        """Schedule an update that a queue requests in `cycle`; return the cycle in which the update is accepted."""
        taken = self._turn.take(cycle)
        self._agenda.at(taken + 1, self._apply, update)
        return taken

    def clear(self, numbers: Iterable[int]) -> None:
        """Set semaphores to 0; no record may be waiting for one of them."""
        for number in numbers:
            self._values[number] = 0

    def _apply(self, update: Update) -> None:
        number = update.semaphore
        if update.op == UpdateOp.SET:
            self._values[number] = update.value
        else:
            self._values[number] += update.value if update.op == UpdateOp.ADD else -update.value
        waiting, self._waiting[number] = self._waiting[number], []
        for call in waiting:
            call()
