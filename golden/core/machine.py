"""Queues, semaphores and engines: the core without its controller.

Only semaphores order one queue against another. By default a queue runs until it must wait, then the next queue runs. A
program without races has the same result in any order; a random generator can choose the order.
"""

import numpy as np

from neuroncore_rtl.golden.core.engines import Engines
from neuroncore_rtl.golden.core.errors import CoreError, Errors
from neuroncore_rtl.golden.core.network import Network
from neuroncore_rtl.golden.core.queue import Queue
from neuroncore_rtl.golden.core.semaphores import Semaphores
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.isa import Cause, collective_queue, queue_count

__all__ = ["Machine"]


class Machine:
    """All of a core except the controller: queues, semaphores, engines and error register.

    `order` chooses the next queue, record by record; None runs each queue in turn as far as it can. `number` is the
    core's index in its instance, `network` None for a single core. `trace` lists (queue, HBM address) of every retired
    record, in order.
    """

    def __init__(
        self,
        config: Config,
        hbm: np.ndarray,
        order: np.random.Generator | None = None,
        number: int = 0,
        network: Network | None = None,
    ):
        self.config = config
        self.number = number
        self.engines = Engines(config, hbm, number, network)
        self.semaphores = Semaphores(config.semaphores)
        self.errors = Errors()
        self.trace: list[tuple[int, int]] = []
        parts = self.engines, self.semaphores, self.errors, self.trace
        self.queues = [Queue(number, *parts) for number in range(queue_count(config))]
        self._order = order

    @property
    def is_waiting(self) -> bool:
        """True if unretired records exist and no error; after `run`, all these records wait for semaphores or cores."""
        return self.errors.first is None and any(queue.is_busy for queue in self.queues)

    def run(self) -> bool:
        """Execute records until none can execute; return whether at least one record was executed."""
        before = len(self.trace)
        if self._order is None:
            self._in_turn()
        else:
            self._at_random(self._order)
        return len(self.trace) > before

    def _in_turn(self) -> None:
        moved = True
        while moved:
            moved = False
            for queue in self.queues:
                while queue.step():
                    moved = True

    def _at_random(self, order: np.random.Generator) -> None:
        able = list(self.queues)
        while able:
            queue = able[order.integers(len(able))]
            if queue.step():
                able = list(self.queues)
            else:
                able.remove(queue)

    def report_deadlock(self) -> None:
        """Report the watchdog's error: a wait of a collective for another core if one exists, else a semaphore wait."""
        awaited = self.engines.network.awaited(self.number)
        if awaited is not None:
            number = collective_queue(self.config)
            assert number is not None
            queue = self.queues[number]
            self.errors.report(CoreError(Cause.STUCK, queue.number, queue.address, 1 << 8 | awaited))
            return
        queue = next(queue for queue in self.queues if queue.is_busy)
        wait = queue.unmet()
        assert wait is not None
        semaphore, wanted = wait
        detail = semaphore | wanted << 8 | (self.semaphores[semaphore] & 0xFF) << 24
        self.errors.report(CoreError(Cause.WATCHDOG, queue.number, queue.address, detail))
