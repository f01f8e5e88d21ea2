"""The numpy model alone: TARGET=golden."""

from dataclasses import dataclass

from neuroncore_rtl.run.jobs import ImageJob
from neuroncore_rtl.run.report import progress
from neuroncore_rtl.run.settings import UsageError
from neuroncore_rtl.run.targets.engine import NO_PROFILE
from neuroncore_rtl.run.targets.target import Executed, Target

__all__ = ["Golden"]


@dataclass(frozen=True, kw_only=True)
class Golden(Target):
    """The numpy model; memories are golden's, and there are no cycles."""

    name = "golden"

    waves: bool = False
    profile: bool = False

    def execute(self, job: ImageJob) -> Executed:
        """Compute a job; UsageError if a profile or a waveform is requested."""
        if self.profile:
            raise UsageError(NO_PROFILE)
        if self.waves:
            raise UsageError("WAVES must be 0 for TARGET=golden, not 1")
        with progress("golden"):
            expected = job.golden()
        job.judge(expected)
        return Executed(memories=expected.memories, expected=expected)
