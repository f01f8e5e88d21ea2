"""The core's error register: the first error stays."""

from dataclasses import dataclass

from neuroncore_rtl.spec.isa import Cause, cause_name

__all__ = ["CoreError", "Errors"]


@dataclass(frozen=True)
class CoreError:
    """What the core reports.

    Arguments:
        cause: a `spec.isa.Rule` or a `spec.isa.Cause`.
        queue: its number.
        address: HBM address of the record.
        detail: what the cause says of it.
    """

    cause: int
    queue: int = 0
    address: int = 0
    detail: int = 0

    def __str__(self) -> str:
        where = "" if self.cause == Cause.BOOT else f" of queue {self.queue}, record {self.address:#x}"
        return f"{cause_name(self.cause)}{where}, detail {self.detail:#x}"


class Errors:
    """Latches the first error; from then on no queue issues anything.

    Attributes:
        first: it, or None.
    """

    def __init__(self):
        self.first: CoreError | None = None

    def report(self, error: CoreError) -> None:
        """Note an error unless there was one before."""
        self.first = self.first or error
