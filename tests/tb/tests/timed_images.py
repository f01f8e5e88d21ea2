"""Cycles of TESTs on the core, on RTL and by the timing model."""

from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from neuroncore_rtl.golden.timing import Prediction
from neuroncore_rtl.run.harness.hbm import Hbm
from neuroncore_rtl.run.harness.run import run_device
from neuroncore_rtl.run.job import ImageJob
from neuroncore_rtl.run.settings import Settings
from neuroncore_rtl.run.targets import ModelTarget
from neuroncore_rtl.tb.cli.registry import command_named
from neuroncore_rtl.tb.tests.core import program

__all__ = ["Case", "Measured", "measure", "table"]


@dataclass(frozen=True)
class Case:
    test: str
    words: str

    @property
    def settings(self) -> Settings:
        own = [word for word in self.words.split() if self.test != "program" or not word.startswith("LATENCY")]
        chosen = command_named(self.test).settings(own)
        if self.test != "program":
            return chosen
        latency = next((int(word[8:]) for word in self.words.split() if word.startswith("LATENCY")), 64)
        return Settings({**chosen.values, "LATENCY": latency, "BANDWIDTH": 0, "STALL": 0})

    def job(self) -> ImageJob:
        settings = self.settings
        if self.test != "program":
            return next(iter(command_named(self.test).jobs(Settings({**settings.values, "TARGET": "core"}))))
        rng = np.random.default_rng(settings.seed)
        images = program.random_images(rng, settings.config, 1, settings.instructions)
        return ImageJob(machine=settings.config, images=images, behaviour=Hbm(latency=settings.latency))


@dataclass(frozen=True)
class Measured:
    case: Case
    cycles: int
    model: Prediction

    @property
    def deviation(self) -> float:
        return self.model.cycles / self.cycles - 1

    @property
    def row(self) -> str:
        return (
            f"| {self.case.test} {self.case.words} | {self.cycles:,} | {self.model.cycles:,} | {self.deviation:+.1%} |"
        )


@cache
def _on_rtl(case: Case) -> tuple[ImageJob, int]:
    job = case.job()
    outcome = run_device(job.device(), job.work(1), doing=f"{case.test} {case.words}").parts[0]
    assert outcome.exit_code is not None and not outcome.errors
    return job, outcome.cycles


def measure(case: Case) -> Measured:
    job, cycles = _on_rtl(case)
    values = {name: case.settings.values.get(name.upper(), 0) for name in ("latency", "bandwidth", "stall")}
    job = replace(job, computes=job.path is not None)
    return Measured(case, cycles, ModelTarget(**values).execute(job).prediction)


def table(rows: list[Measured]) -> str:
    return "\n".join(["| TEST | RTL | model | deviation |", "|---|---|---|---|", *(row.row for row in rows)])
