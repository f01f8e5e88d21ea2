"""Semaphores: small counters that hold back what must come later."""

from neuroncore_rtl.spec import config
from neuroncore_rtl.spec.isa import UpdateOp
from neuroncore_rtl.spec.isa.record import SEMAPHORE_MAX

__all__ = ["Semaphores"]


class Semaphores:
    """The semaphores of a core.

    Attributes:
        values: of each; 0 at first.
    """

    def __init__(self):
        self.values = [0] * config.SEMAPHORES

    def update(self, semaphore: int, op: UpdateOp, value: int) -> bool:
        """Change a semaphore; return False, and do nothing, if it would leave its range."""
        old = self.values[semaphore]
        new = {UpdateOp.SET: value, UpdateOp.ADD: old + value, UpdateOp.SUBTRACT: old - value}[op]
        if not 0 <= new <= SEMAPHORE_MAX:
            return False
        self.values[semaphore] = new
        return True
