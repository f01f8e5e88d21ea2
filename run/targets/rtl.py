"""The RTL of cores in a simulator: TARGET=core."""

from dataclasses import dataclass

from neuroncore_rtl.run.harness.run import run as simulate
from neuroncore_rtl.run.job import Job
from neuroncore_rtl.run.report import shown
from neuroncore_rtl.run.sim.vectors import lanes_choice
from neuroncore_rtl.run.targets.target import Executed, Target
from neuroncore_rtl.run.view.waves import waveform, write_save_file

__all__ = ["Rtl"]


@dataclass(frozen=True, kw_only=True)
class Rtl(Target):
    """The RTL in a simulator; memories, cycles and counters are the hardware's.

    Arguments:
        sim: "verilator" or "icarus".
        lanes: how Verilator's designs evaluate replicated modules; None: as the environment's LANES, or vector.
        waves: whether a waveform is recorded.
        depth: levels of the hierarchy in the waveform, 0 for all.
        seed: of pauses and disturbances.
        profile: see `Target`.
    """

    name = "rtl"
    compares = True

    sim: str = "verilator"
    lanes: str | None = None
    waves: bool = False
    depth: int = 3
    seed: int = 1
    profile: bool = False

    def execute(self, job: Job) -> Executed:
        """Simulate a job's device."""
        path = waveform(job.name) if self.waves and job.name else None
        device = job.device(waves=self.waves)
        work = job.work(self.seed, sampled=job.pictures is not None, profiled=self.profile)
        levels = self.depth and self.depth + job.levels
        recorded = {"waves": path, "waves_levels": levels}
        with lanes_choice(self.lanes):
            outcome = simulate(device, work, sim=self.sim, doing=job.doing, **recorded)
        return Executed(
            memories=outcome.memories,
            cycles=job.cycles(outcome),
            outcome=outcome,
            waveform=shown(write_save_file(path, job.core)) if path else None,
        )
