"""The timing model: TARGET=model. It predicts the cycles of an image in seconds where RTL would take hours."""

from dataclasses import dataclass

from neuroncore_rtl.golden import timing
from neuroncore_rtl.run.job import Expected, Job
from neuroncore_rtl.run.jobs import ImageJob
from neuroncore_rtl.run.report import progress
from neuroncore_rtl.run.settings import UsageError
from neuroncore_rtl.run.targets.target import Executed, Target

__all__ = ["ModelTarget"]


@dataclass(frozen=True, kw_only=True)
class ModelTarget(Target):
    """The timing model; cycles are predicted, and nothing is compared.

    Arguments:
        latency, bandwidth: of HBM, see :class:`golden.timing.MemoryTiming`.
        stall, waves: must be 0; the model has no random pauses and no signals.
        profile: see `Target`.
    """

    name = "model"

    latency: int = 64
    bandwidth: int = 0
    stall: int = 0
    waves: int = 0
    profile: bool = False

    def execute(self, job: Job) -> Executed:
        """Predict an image on one core."""
        for option in ("stall", "waves"):
            if getattr(self, option):
                raise UsageError(f"{option.upper()} must be 0 for TARGET=model, not {getattr(self, option)}")
        if not isinstance(job, ImageJob) or job.instance is not None or len(job.images) > 1:
            raise UsageError(f"TARGET=model must be given one image on one core, not {job.doing}")
        if job.config.cores > 1:
            raise UsageError(f"CORES must be 1 for TARGET=model, not {job.config.cores}")
        (image,) = job.images
        expected: Expected | None = None
        if job.computes or image.flow is not None:
            with progress(f"golden: {job.note}" if job.note else "golden"):
                expected = job.golden()
            job.judge(expected)
        options = job.flow(expected.outcomes[0]) if expected else {}
        memory = timing.MemoryTiming(latency=self.latency, bandwidth=self.bandwidth)
        with progress(f"timing model: {sum(map(len, image.records)):,} records"):
            prediction = timing.predict(image, memory, **options)
        memories = expected.memories if expected else {}
        return Executed(memories=memories, cycles=prediction.cycles, prediction=prediction, expected=expected)
