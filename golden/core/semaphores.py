"""Semaphores: counters that order records of different queues."""

from neuroncore_rtl.spec.config import SEMAPHORE_COUNT
from neuroncore_rtl.spec.isa import UpdateOp
from neuroncore_rtl.spec.isa.record import SEMAPHORE_MAX

__all__ = ["Semaphores"]


class Semaphores:
    """Semaphores of a core, initially 0; an index is taken modulo the number of semaphores."""

    def __init__(self, count: int = SEMAPHORE_COUNT):
        self.values = [0] * count

    def __getitem__(self, semaphore: int) -> int:
        return self.values[semaphore % len(self.values)]

    def update(self, semaphore: int, op: UpdateOp, value: int) -> bool:
        """Update a semaphore; return False, without effect, on overflow or underflow."""
        old = self[semaphore]
        new = {UpdateOp.SET: value, UpdateOp.ADD: old + value, UpdateOp.SUBTRACT: old - value}[op]
        if not 0 <= new <= SEMAPHORE_MAX:
            return False
        self.values[semaphore % len(self.values)] = new
        return True
