"""The RTL of an engine alone, a harness in the place of the memories: TARGET=engine."""

from dataclasses import dataclass

from neuroncore_rtl.run.job import Job
from neuroncore_rtl.run.settings import UsageError
from neuroncore_rtl.run.targets.rtl import Rtl
from neuroncore_rtl.run.targets.target import Executed

__all__ = ["NO_PROFILE", "EngineTarget"]

NO_PROFILE = "PROFILE must be 0 for an engine alone, and for golden: the core and its timing model have profiles"


@dataclass(frozen=True, kw_only=True)
class EngineTarget(Rtl):
    """As :class:`run.targets.rtl.Rtl`, of devices that have no profile."""

    name = "engine"

    def execute(self, job: Job) -> Executed:
        """Simulate an engine; UsageError if a profile is requested."""
        if self.profile:
            raise UsageError(NO_PROFILE)
        return super().execute(job)
