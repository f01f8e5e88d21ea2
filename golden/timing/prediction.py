"""Results of the timing model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

__all__ = ["Prediction", "Timed"]


@dataclass(slots=True)
class Timed:
    """Cycles in which a record reaches each stage, counted from the start of the run.

    `ready` is the cycle in which the record is at the head of its queue and all its semaphore waits are satisfied;
    `began` the cycle in which the first column of a MultiplyMoving enters the array. For `issued` and `retired` see
    `run.harness.outcome.Event`. `address` is the HBM address of the record.
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
    """Predicted run of an image.

    Arguments:
        cycles: cycles from the start to the end of the control program.
        records: all records in the order of issue.
        busy: cycles in which each engine works, by the name of its queue.
        waits: stall cycles by queue and cause. At the queue: fetch (next record), semaphore (another queue), engine
            (its engine is full). In the engine: weights, hbm (data in flight from HBM), bank (bank conflict or line
            port arbitration).
    """

    cycles: int
    records: Sequence[Timed]
    busy: Mapping[str, int]
    waits: Mapping[str, Mapping[str, int]]

    def __add__(self, other: "Prediction") -> "Prediction":
        return Prediction(
            cycles=self.cycles + other.cycles,
            records=[*self.records, *other.records],
            busy={name: count + other.busy[name] for name, count in self.busy.items()},
            waits={
                name: {cause: count + other.waits[name][cause] for cause, count in causes.items()}
                for name, causes in self.waits.items()
            },
        )
