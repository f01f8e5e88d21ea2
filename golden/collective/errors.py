"""What can go wrong between cores that execute collectives."""

from neuroncore_rtl.spec.isa import Cause, Rule

__all__ = ["CollectiveError", "Deadlock"]


class CollectiveError(Exception):
    """A collective cannot be executed.

    Arguments:
        message: names the core, or both of them, and what is wrong.
        core: the one that refuses.
        cause: a rule that its instruction breaks; DISAGREE, another rank says otherwise; AXI, beyond its memory; None,
            the machine does not notice.
        detail: as the machine reports it.
    """

    def __init__(self, message: str, core: int, cause: Rule | Cause | None = None, detail: int = 0):
        super().__init__(message)
        self.core = core
        self.cause = cause
        self.detail = detail


class Deadlock(Exception):
    """No core can proceed.

    Arguments:
        waiting: for each core that has not come to its end the cores that it waits for.
    """

    def __init__(self, message: str, waiting: dict[int, tuple[int, ...]]):
        super().__init__(message)
        self.waiting = waiting
