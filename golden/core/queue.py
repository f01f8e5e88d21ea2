"""Queue: issues records in order, each when its semaphore waits hold."""

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
    """A fetched record: code of its engine, and its instruction word, not decoded.

    A wait is a semaphore and its minimum value; an update a semaphore, an operation and a value.
    """

    engine: Engine
    body: int
    waits: list[tuple[int, int]]
    updates: list[tuple[int, UpdateOp, int]]


@lru_cache(1 << 16)
def _record(word: int) -> _Record:
    h = unpack(HEADER_FIELDS, word)
    waits = [(h[f"wait{n}_semaphore"], h[f"wait{n}_value"]) for n in (0, 1) if h[f"wait{n}"]]
    ops = [(n, UpdateOp(h[f"update{n}"])) for n in (0, 1)]
    updates = [(h[f"update{n}_semaphore"], op, h[f"update{n}_value"]) for n, op in ops if op != UpdateOp.NONE]
    return _Record(cast("Engine", h["engine"]), word >> HEADER_BITS, waits, updates)


class Queue:
    """Queue of records: decodes and executes the record at its head, then retires it immediately.

    `trace` receives (queue, HBM address) of every retired record. `rung` and `retired` count the records started by
    doorbells, and those retired, since reset.
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
        self._blocks: deque[range] = deque()  # remaining addresses of each
        self._record: _Record | None = None  # the next one, if fetched

    def start(self, address: int, count: int) -> None:
        """Accept a block of records, for which a slot must be free; do nothing after an error."""
        if count and self._errors.first is None:
            self._blocks.append(range(address, address + count * RECORD_BYTES, RECORD_BYTES))
            self.rung += count

    @property
    def places(self) -> int:
        """Number of free slots for blocks of records."""
        ahead, held = self._ahead, 0
        for block in self._blocks:
            ahead -= len(block)
            held += ahead < 0
        return QUEUE_BLOCKS - held

    @property
    def is_busy(self) -> bool:
        """True while some records have not retired."""
        return bool(self._blocks)

    @property
    def address(self) -> int:
        """HBM address of the next record of a busy queue."""
        return self._blocks[0][0]

    def unmet(self) -> tuple[int, int] | None:
        """Return semaphore and minimum value of the next record's first unsatisfied wait, or None."""
        waits = self._record.waits if self._record else ()
        return next(((semaphore, value) for semaphore, value in waits if self._semaphores[semaphore] < value), None)

    def step(self) -> bool:
        """Execute the next record; return False if no record exists, the record must wait, or after an error."""
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
