"""The interface of a job: what a target executes, what golden makes of it, and how an outcome is judged."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from neuroncore_rtl.run.harness.outcome import Outcome
from neuroncore_rtl.run.harness.run import Device
from neuroncore_rtl.run.view.timeline import TrackGroup
from neuroncore_rtl.spec.instance import Instance

__all__ = ["DeviceJob", "Expected", "Job"]


@dataclass(frozen=True, kw_only=True)
class Expected:
    """What golden makes of a job.

    Arguments:
        memories: after the run, uint8, by the names that outcomes have for them.
        outcomes: of each image, in order; empty where golden only computes memories.
    """

    memories: Mapping[str, np.ndarray]
    outcomes: Sequence[Any] = ()


@dataclass(frozen=True, kw_only=True)
class Job:
    """A piece of work for a target.

    Arguments:
        name: of the waveform; None: none is recorded.
        pictures: name of the timeline, the picture of the links and the profile; None: there are none.
        subject: what it was made of, for the judge of the result.

    Attributes:
        instance: the instance whose links take part; None if there are none.
        doing: the activity, for the progress display.
        title: of the picture of the links.
        core: the core whose insides a waveform shows; None: none in particular.
        levels: levels of the hierarchy between the harness and the level from which DEPTH counts.
    """

    name: str | None = None
    pictures: str | None = None
    subject: Any = None

    core = None
    levels = 0

    if TYPE_CHECKING:  # fields of some jobs, properties of others

        @property
        def instance(self) -> Instance | None: ...
        @property
        def doing(self) -> str: ...
        @property
        def title(self) -> str: ...

    def device(self, *, waves: bool = False) -> Device:
        """Return the device that executes the job; waves: with the signals that a waveform needs."""
        raise NotImplementedError

    def work(self, seed: int, *, sampled: bool = False, profiled: bool = False) -> object:
        """Return the work of the device.

        Arguments:
            seed: of random pauses and disturbances.
            sampled: whether the links are sampled.
            profiled: whether the outcome has the engines' activity.
        """
        raise NotImplementedError

    def golden(self) -> Expected | None:
        """Return the golden model's outcome; None if only the caller can judge the job."""
        return None

    def parts(self, memories: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        """Return the bytes of memories that are compared, by name."""
        return memories

    def failures(self, outcome: Outcome, expected: Expected) -> Iterable[str]:
        """Yield what is wrong with the outcome besides the contents of memories, a sentence each."""
        return ()

    def differences(self, found: Mapping[str, np.ndarray], expected: Expected) -> Iterable[str]:
        """Yield the first differences between memories, a line each."""
        return ()

    def cycles(self, outcome: Outcome) -> int:
        """Return the cycles of the run."""
        return outcome.cycles

    def tracks(self, outcome: Outcome) -> Iterable[TrackGroup]:
        """Return the tracks of the timeline."""
        return ()


@dataclass(frozen=True, kw_only=True)
class DeviceJob(Job):
    """Work of any device, whose outcome the caller judges.

    Arguments (besides those of `Job`):
        on: the device.
        load: its work.
        doing, instance, title: see `Job`.
        recorded: returns the tracks of the timeline, given the outcome; None: there is no timeline.
    """

    on: Device
    load: Any
    doing: str
    instance: Instance | None = None
    title: str = ""
    recorded: Any = None

    def device(self, *, waves: bool = False) -> Device:
        return self.on

    def work(self, seed: int, *, sampled: bool = False, profiled: bool = False) -> object:
        return self.load

    def tracks(self, outcome: Outcome) -> Iterable[TrackGroup]:
        return self.recorded(outcome) if self.recorded else ()
