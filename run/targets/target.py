"""The interface of a target, and what an execution on one leaves."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from neuroncore_rtl.golden.timing import Prediction
from neuroncore_rtl.run.harness.outcome import Outcome
from neuroncore_rtl.run.job import Expected, Job

__all__ = ["Executed", "Target"]


@dataclass(frozen=True, kw_only=True)
class Executed:
    """A job that a target executed.

    Arguments:
        memories: after the run, uint8, by name; empty if the target computes none.
        cycles: of the run; None if the target has no clock.
        outcome: of a simulation or a board.
        prediction: of the timing model.
        expected: what golden made of the job, if the target asked golden.
        known: for each memory of which only a part was read, which bytes; bool of its shape.
        failures: what the target found wrong, a sentence each.
        waveform: the file, if one was recorded.
    """

    memories: Mapping[str, np.ndarray] = field(default_factory=dict)
    cycles: int | None = None
    outcome: Outcome | None = None
    prediction: Prediction | None = None
    expected: Expected | None = None
    known: Mapping[str, np.ndarray] = field(default_factory=dict)
    failures: tuple[str, ...] = ()
    waveform: str | None = None


class Target(ABC):
    """Executes jobs.

    Attributes:
        name: in options and results.
        compares: whether the memories that it returns are its own, and so are compared with golden's.
        profile: whether a profile of each run is written.
    """

    name: ClassVar[str]
    compares: ClassVar[bool] = False
    profile: bool = False

    @abstractmethod
    def execute(self, job: Job) -> Executed:
        """Execute a job.

        Arguments:
            job: the job; its links are sampled if it has a timeline.

        Raises:
            UsageError: if the target cannot execute such a job.
        """
