"""What the timing model says of a run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

__all__ = ["Prediction", "Timed"]


@dataclass(slots=True)
class Timed:
    """A record in time; all cycles since the start.

    Arguments:
        queue: which one of its core's.
        address: of the record in HBM.
        fetched: it is at the head of its queue, and those before it are issued or before it in the queue.
        ready: its semaphores hold, and its turn has come.
        issued, retired: as in `run.harness.outcome.Event`.
        began: of a MultiplyMoving, its first column enters the array.
    """

    queue: int
    address: int
    fetched: int = -1
    ready: int = -1
    issued: int = -1
    retired: int = -1
    began: int = -1


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """A run of an image.

    Arguments:
        cycles: from the start to the end of the control program.
        records: in the order in which they are issued.
        busy: of each engine by the name of its queue, the cycles in which it works.
        waits: of each queue by its name, the cycles that were waited by cause. By the queue: for its next record
            (fetch), for another queue (semaphore), for its engine (engine). By its engine: for weights, for what is on
            its way from HBM (hbm), for a bank of SBUF or PSUM or the turn at a line port (bank).
    """

    cycles: int
    records: Sequence[Timed]
    busy: Mapping[str, int]
    waits: Mapping[str, Mapping[str, int]]

    def __add__(self, other: "Prediction") -> "Prediction":
        """Return both runs, one after the other; the records keep their own cycles."""
        return Prediction(
            cycles=self.cycles + other.cycles,
            records=[*self.records, *other.records],
            busy={name: count + other.busy[name] for name, count in self.busy.items()},
            waits={
                name: {cause: count + other.waits[name][cause] for cause, count in causes.items()}
                for name, causes in self.waits.items()
            },
        )
