"""The fetcher of records: all queues share it, and port 0 of HBM with DMA engines."""

from collections import deque
from collections.abc import Callable

from neuroncore_rtl.golden.timing.memory import Hbm, Server
from neuroncore_rtl.spec import timing
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.isa import RECORD_BYTES

__all__ = ["Fetcher"]


class Fetcher:
    """Takes a request a cycle, as long as not too many are open.

    Arguments:
        config: the machine's parameters.
        hbm: from where records come.
    """

    TO_PORT = 2
    """Cycles from a request that is taken to its address at the port."""
    TO_HEAD = 2
    """Cycles from a record's last beat to where its queue looks at it."""

    def __init__(self, config: Config, hbm: Hbm):
        self._hbm, self._beats = hbm, RECORD_BYTES // config.hbm_bytes
        self._turn, self._open, self._flying = Server(), deque(), 0

    def fetch(self, cycle: int, call: Callable[[int], None]) -> int:
        """Return when a request of `cycle` is taken; call with the cycle in which the record is at its queue's head."""
        if self._flying == timing.FETCHER_RECORDS and self._open:
            cycle = max(cycle, self._open.popleft() + 1)
            self._flying -= 1
        taken = self._turn.take(cycle)
        self._flying += 1

        def come(_, last: int) -> None:
            self._open.append(last)
            call(last + self.TO_HEAD)

        self._hbm.read(0, taken + self.TO_PORT, self._beats, 1, come)
        return taken
