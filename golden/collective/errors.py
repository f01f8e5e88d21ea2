"""Errors of cores that execute collectives."""

from neuroncore_rtl.spec.isa import Cause, Rule

__all__ = ["CollectiveError", "Deadlock"]


class CollectiveError(Exception):
    """A collective cannot be executed.

    `core` reports the error. `cause` is the broken rule, DISAGREE if another rank's instruction differs, AXI if it
    reaches beyond the memory, or None if the machine does not detect the fault. `detail` is the machine's error detail.
    """

    def __init__(self, message: str, core: int, cause: Rule | Cause | None = None, detail: int = 0):
        super().__init__(message)
        self.core = core
        self.cause = cause
        self.detail = detail


class Deadlock(Exception):
    """No core can proceed; `waiting` maps each unfinished core to the cores for which that core waits."""

    def __init__(self, message: str, waiting: dict[int, tuple[int, ...]]):
        super().__init__(message)
        self.waiting = waiting
