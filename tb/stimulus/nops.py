"""Programs with NOPs at random positions, which wait for semaphores instead of other records."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from neuroncore_rtl.kernels.program.entries import Entry, records_of
from neuroncore_rtl.kernels.program.program import Program
from neuroncore_rtl.spec.isa import Nop, Record, Update, UpdateOp, Wait, queue_count

__all__ = ["NopProgram"]

SCRATCH = 4  # semaphores for which no record waits


@dataclass
class NopProgram(Program):
    """A program of one section with NOPs before a share of its records.

    The waits of such a record move to a NOP before the record in its queue, or to NOPs in any queues. In the second
    case the NOPs increment a separate semaphore, and the record waits for it. The program uses the first half of the
    semaphores, the NOPs use the second half.
    """

    share: float = 0.2
    seed: int = 0

    @property
    def entries(self) -> list[Entry]:
        return [entry for entry, _ in self._mixed()]

    def records(self) -> list[Record]:
        return [record for _, record in self._mixed()]

    def _mixed(self) -> Iterator[tuple[Entry, Record]]:
        rng = np.random.default_rng(self.seed)
        half = len(self.semaphores) // 2
        scratch, joins = self.semaphores[half : half + SCRATCH], iter(self.semaphores[half + SCRATCH :])
        entries = super().entries
        for entry, record in zip(entries, records_of(entries, self.semaphores[:half]), strict=True):
            if rng.random() >= self.share:
                yield entry, record
                continue
            semaphore = next(joins, None) if rng.random() < 0.7 else None
            if semaphore is None:
                nops, waits = [(entry.queue, record.waits, ())], ()
            else:
                parts = (record.waits,) if rng.random() < 0.5 else (record.waits[:1], record.waits[1:])
                nops = [(int(rng.integers(queue_count(self.config))), part, (Update(semaphore),)) for part in parts]
                waits = (Wait(semaphore, len(parts)),)
            for queue, own, updates in nops:
                if rng.random() < 0.5:
                    op = UpdateOp.SET if rng.random() < 0.5 else UpdateOp.ADD
                    unread = Update(scratch[int(rng.integers(SCRATCH))], int(rng.integers(16)), op)
                    updates = (unread, *updates) if rng.random() < 0.5 else (*updates, unread)
                nop = Record(instruction=Nop(), waits=own, updates=updates)
                yield replace(entry, queue=queue, lane=None, number=0, instruction=nop.instruction, waits=[]), nop
            yield entry, replace(record, waits=waits)
