"""A queue: takes records in order, each when its semaphores allow it, and gives them to its engine."""

from collections import deque
from functools import lru_cache
from typing import NamedTuple, cast

import numpy as np

from neuroncore_rtl.golden.core.engines import Engines
from neuroncore_rtl.golden.core.errors import CoreError, Errors
from neuroncore_rtl.golden.core.network import WaitingCores
from neuroncore_rtl.golden.core.semaphores import Semaphores
from neuroncore_rtl.spec.isa import (
    HEADER_BITS,
    HEADER_FIELDS,
    RECORD_BYTES,
    Cause,
    Engine,
    UpdateOp,
    engine_of_queue,
    engines_taken,
)
from neuroncore_rtl.spec.isa.engine import QUEUE_BLOCKS, records_ahead
from neuroncore_rtl.spec.isa.fields import unpack

__all__ = ["Queue"]


class _Record(NamedTuple):
    """A record that was fetched.

    Arguments:
        engine: the code of the one that it is for.
        body: its instruction.
        waits: semaphores and what they must at least be.
        updates: what becomes of semaphores.
    """

    engine: Engine
    body: int
    waits: list[tuple[int, int]]
    updates: list[tuple[int, UpdateOp, int]]


@lru_cache(1 << 16)
def _record(word: int) -> _Record:
    """Return what a record says; one of a section that is run again is read once."""
    h = unpack(HEADER_FIELDS, word)
    waits = [(h[f"wait{n}_semaphore"], h[f"wait{n}_value"]) for n in (0, 1) if h[f"wait{n}"]]
    ops = [(n, UpdateOp(h[f"update{n}"])) for n in (0, 1)]
    updates = [(h[f"update{n}_semaphore"], op, h[f"update{n}_value"]) for n, op in ops if op != UpdateOp.NONE]
    return _Record(cast("Engine", h["engine"]), word >> HEADER_BITS, waits, updates)


class Queue:
    """One queue; what a record says is read when it is the next one, and it retires as soon as it is executed.

    Arguments:
        number: of the queue.
        engines, semaphores, errors: of the core.
        trace: (queue, HBM address) of every record that retires is appended.

    Attributes:
        rung, retired: records since reset.
    """

    def __init__(self, number: int, engines: Engines, semaphores: Semaphores, errors: Errors, trace: list):
        self.number = number
        self.engine = engine_of_queue(number, engines.config)
        self.rung = self.retired = 0
        self._ahead = records_ahead(self.engine, engines.config)
        self._engines = engines
        self._semaphores = semaphores
        self._errors = errors
        self._trace = trace
        self._blocks: deque[range] = deque()  # the addresses that are left of each
        self._record: _Record | None = None  # the next one, once it was fetched

    def start(self, address: int, count: int) -> None:
        """Take a block of records, for which there must be a place; after an error forget it."""
        if count and self._errors.first is None:
            self._blocks.append(range(address, address + count * RECORD_BYTES, RECORD_BYTES))
            self.rung += count

    @property
    def places(self) -> int:
        """Blocks that can be started without waiting."""
        ahead, held = self._ahead, 0
        for block in self._blocks:
            ahead -= len(block)
            held += ahead < 0
        return QUEUE_BLOCKS - held

    @property
    def is_busy(self) -> bool:
        """Whether there are records that have not retired."""
        return bool(self._blocks)

    @property
    def address(self) -> int:
        """Of the next record, of a queue that is busy."""
        return self._blocks[0][0]

    def unmet(self) -> tuple[int, int] | None:
        """Return the first wait, semaphore and value, that holds the next record back; None if nothing does."""
        waits = self._record.waits if self._record else ()
        return next(((semaphore, value) for semaphore, value in waits if self._semaphores[semaphore] < value), None)

    def step(self) -> bool:
        """Execute the next record; return False if there is none, it has to wait, or an error has been reported."""
        if not self._blocks or self._errors.first or (self._record is None and not self._fetch()) or self.unmet():
            return False
        record, address = self._record, self.address
        assert record is not None
        try:
            fault = self._engines.execute(record.engine, record.body)
        except WaitingCores:
            return False
        if fault is not None:
            self._report(*fault)
            return False
        self._retire()
        for semaphore, op, value in record.updates:
            if not self._semaphores.update(semaphore, op, value):
                self._errors.report(CoreError(Cause.SEMAPHORE, self.number, address, semaphore))
        return True

    def _fetch(self) -> bool:
        """Fetch the next record; return False after an error."""
        data: np.ndarray = self._engines.hbm[self.address : self.address + RECORD_BYTES]
        if len(data) < RECORD_BYTES:
            return self._report(Cause.FETCH, 0)
        record = _record(int.from_bytes(data.tobytes(), "little"))
        if record.engine not in engines_taken(self.engine):
            return self._report(Cause.ENGINE, record.engine)
        self._record = record
        return True

    def _report(self, cause: int, detail: int) -> bool:
        self._errors.report(CoreError(cause, self.number, self.address, detail))
        return False

    def _retire(self) -> None:
        self._trace.append((self.number, self.address))
        self.retired += 1
        self._record = None
        self._blocks[0] = self._blocks[0][1:]
        if not self._blocks[0]:
            self._blocks.popleft()
