"""The fetcher of records: all queues share it, and port 0 of HBM with DMA engines."""

from collections import deque
from collections.abc import Callable
from functools import partial

from neuroncore_rtl.golden.timing.events import Agenda
from neuroncore_rtl.golden.timing.memory import TimedHbm
from neuroncore_rtl.spec import timing
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.isa import RECORD_BYTES

__all__ = ["Fetcher"]


class Fetcher:
    """Takes a request a cycle, as long as not too many are open.

    Arguments:
        config: the machine's parameters.
        agenda: what happens when.
        hbm: from where records come.
    """

    TO_PORT = 2
    """Cycles from a request that is taken to its address at the port."""
    TO_HEAD = 2
    """Cycles from a record's last beat to where its queue looks at it."""

    def __init__(self, config: Config, agenda: Agenda, hbm: TimedHbm):
        self._agenda, self._hbm, self._beats = agenda, hbm, RECORD_BYTES // config.hbm_bytes
        self._waiting: deque[tuple[Callable[[], None], Callable[[int], None]]] = deque()
        self._free = self._flying = 0
        self._serving = False

    def fetch(self, taken: Callable[[], None], come: Callable[[int], None]) -> None:
        """Ask for a record in this cycle.

        Arguments:
            taken: called in the cycle in which the request is taken.
            come: told of the cycle in which the record is at its queue's head.
        """
        self._waiting.append((taken, come))
        self._serve_soon()

    def _serve_soon(self) -> None:
        if self._waiting and not self._serving and self._flying < timing.FETCHER_RECORDS:
            self._serving = True
            self._agenda.at(max(self._free, self._agenda.now), self._serve)

    def _serve(self) -> None:
        taken, come = self._waiting.popleft()
        self._serving = False
        self._flying += 1
        self._free = self._agenda.now + 1
        self._hbm.read(0, self._agenda.now + self.TO_PORT, self._beats, 1, partial(self._come, come))
        taken()
        self._serve_soon()

    def _come(self, come: Callable[[int], None], _: int, last: int) -> None:
        self._agenda.at(last + 1, self._leave)
        come(last + self.TO_HEAD)

    def _leave(self) -> None:
        self._flying -= 1
        self._serve_soon()
