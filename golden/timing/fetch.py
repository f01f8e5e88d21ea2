"""Record fetcher: shared by all queues; it shares port 0 of HBM with DMA engines."""

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
    """Fetch unit for records in HBM: accepts one request per cycle, up to a maximum of outstanding requests."""

    TO_PORT = 2
    """Cycles from an accepted request to its address at the port."""
    TO_HEAD = 2
    """Cycles from a record's last beat until its queue sees it."""

    def __init__(self, config: Config, agenda: Agenda, hbm: TimedHbm):
        self._agenda, self._hbm, self._beats = agenda, hbm, RECORD_BYTES // config.hbm_bytes
        self._waiting: deque[tuple[Callable[[], None], Callable[[int], None]]] = deque()
        self._free = self._in_flight = 0
        self._serving = False

    def fetch(self, accepted: Callable[[], None], arrived: Callable[[int], None]) -> None:
        """Request a record from HBM in the current cycle.

        `accepted` is called in the cycle of acceptance, `arrived` with the cycle in which the record heads its queue.
        """
        self._waiting.append((accepted, arrived))
        self._serve_soon()

    def _serve_soon(self) -> None:
        if self._waiting and not self._serving and self._in_flight < timing.FETCHER_RECORDS:
            self._serving = True
            self._agenda.at(max(self._free, self._agenda.now), self._serve)

    def _serve(self) -> None:
        accepted, arrived = self._waiting.popleft()
        self._serving = False
        self._in_flight += 1
        self._free = self._agenda.now + 1
        self._hbm.read(0, self._agenda.now + self.TO_PORT, self._beats, 1, partial(self._arrive, arrived))
        accepted()
        self._serve_soon()

    def _arrive(self, arrived: Callable[[int], None], _: int, last: int) -> None:
        self._agenda.at(last + 1, self._finish)
        arrived(last + self.TO_HEAD)

    def _finish(self) -> None:
        self._in_flight -= 1
        self._serve_soon()
