"""Error register of the core; it keeps the first error."""

from dataclasses import dataclass

from neuroncore_rtl.spec.isa import Cause, cause_name

__all__ = ["CoreError", "Errors"]


@dataclass(frozen=True)
class CoreError:
    """Error that a core reports in its error registers.

    `cause` is a `spec.isa.Rule` or a `spec.isa.Cause`, on which the meaning of `detail` depends; `address` is the HBM
    address of the record.
    """

    cause: int
    queue: int = 0
    address: int = 0
    detail: int = 0

    def __str__(self) -> str:
        where = "" if self.cause == Cause.BOOT else f" of queue {self.queue}, record {self.address:#x}"
        return f"{cause_name(self.cause)}{where}, detail {self.detail:#x}"


class Errors:
    """Error register; after an error no queue issues records."""

    def __init__(self):
        self.first: CoreError | None = None

    def report(self, error: CoreError) -> None:
        """Record an error unless an earlier error is recorded."""
        self.first = self.first or error
