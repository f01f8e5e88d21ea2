"""Semaphores: small counters that hold back what must come later."""

from neuroncore_rtl.spec.config import SEMAPHORE_COUNT
from neuroncore_rtl.spec.isa import UpdateOp
from neuroncore_rtl.spec.isa.record import SEMAPHORE_MAX

__all__ = ["Semaphores"]


class Semaphores:
    """The semaphores of a core.

    Arguments:
        count: how many there are; the upper bits of a number beyond them are ignored.

    Attributes:
        values: of each; 0 at first.
    """

    def __init__(self, count: int = SEMAPHORE_COUNT):
        self.values = [0] * count

    def __getitem__(self, semaphore: int) -> int:
        """Return the value of the semaphore that a number names."""
        return self.values[semaphore % len(self.values)]

    def update(self, semaphore: int, op: UpdateOp, value: int) -> bool:
        """Change a semaphore; return False, and do nothing, if it would leave its range."""
        old = self[semaphore]
        new = {UpdateOp.SET: value, UpdateOp.ADD: old + value, UpdateOp.SUBTRACT: old - value}[op]
        if not 0 <= new <= SEMAPHORE_MAX:
            return False
        self.values[semaphore % len(self.values)] = new
        return True
