"""Images of TESTs on the core, and how many cycles they take on RTL and by the timing model."""

from dataclasses import dataclass
from functools import cache

import numpy as np

from neuroncore_rtl.golden.timing import Prediction, predict
from neuroncore_rtl.kernels.models import digits as network
from neuroncore_rtl.kernels.program.image import Image, build_image
from neuroncore_rtl.run.arrays import encode
from neuroncore_rtl.run.core import hbm_of
from neuroncore_rtl.run.harness.hbm import Hbm
from neuroncore_rtl.run.harness.run import run
from neuroncore_rtl.run.images import ImageTask
from neuroncore_rtl.run.modelled import memory_timing
from neuroncore_rtl.run.settings import Settings
from neuroncore_rtl.spec.formats import format_named
from neuroncore_rtl.tb.cli.registry import command_named
from neuroncore_rtl.tb.tests.core import program
from neuroncore_rtl.tb.tests.kernels import digits, matmul
from neuroncore_rtl.tb.tests.kernels.workbench import CoreWorkbench
from neuroncore_rtl.tb.tests.learning import charlm, train

__all__ = ["Case", "Measured", "measured", "table"]


@dataclass(frozen=True)
class Case:
    """A TEST and its variables, NAME=VALUE apart by blanks."""

    test: str
    words: str

    @property
    def settings(self) -> Settings:
        """Its variables' values; those of the core's HBM where the TEST has none of its own."""
        own = [word for word in self.words.split() if self.test != "program" or not word.startswith("LATENCY")]
        chosen = command_named(self.test).settings(own)
        if self.test != "program":
            return chosen
        latency = next((int(word[8:]) for word in self.words.split() if word.startswith("LATENCY")), 64)
        return Settings({**chosen.values, "LATENCY": latency, "BANDWIDTH": 0, "STALL": 0})

    def image(self) -> Image:
        """Return what the core runs."""
        settings, rng = self.settings, np.random.default_rng(self.settings.seed)
        config = settings.config
        if self.test == "program":
            return program.random_images(rng, config, 1, settings.instructions)[0]
        if self.test == "matmul":
            fmt = format_named(settings.dtype)
            shapes = (settings.m, settings.k), (settings.k, settings.n)
            operands = (matmul.random_matrix(rng, fmt, *shape) for shape in shapes)
            return matmul.product_image(*operands, fmt, config)[0]
        if self.test == "digits":
            layers, (images, _) = network.load(), network.held_out()
            classifier = digits.Classifier(config, settings.batch, digits.sizes_of(layers))
            return classifier.image(layers, images[: settings.batch], encode, settings.confidence / 100)
        if self.test == "train":
            task = train.task_of(settings)
            trainer = train.trainer_of(settings, task, settings.round)
            return trainer.image(task.images, task.labels, task.start, encode)
        if self.test == "charlm":
            task = charlm.task_of(settings)
            return charlm.image_of(charlm.model_of(settings, task), task)
        bench = CoreWorkbench(config)
        command_named(self.test).build(bench, settings, rng)
        return build_image(bench.program, bench.contents, runs=bench.runs)


@dataclass(frozen=True)
class Measured:
    """Cycles of a case on RTL, and what the model says of it."""

    case: Case
    cycles: int
    model: Prediction

    @property
    def deviation(self) -> float:
        """The model's, as a share of the RTL's cycles."""
        return self.model.cycles / self.cycles - 1

    @property
    def row(self) -> str:
        """A line of the table."""
        return (
            f"| {self.case.test} {self.case.words} | {self.cycles:,} | {self.model.cycles:,} | {self.deviation:+.1%} |"
        )


@cache
def _on_rtl(case: Case) -> tuple[Image, int, frozenset[int]]:
    """Return the image, the cycles that it takes, and the addresses of the records that were executed."""
    settings, image = case.settings, case.image()
    behaviour = Hbm(latency=settings.latency) if case.test == "program" else hbm_of(settings)
    task = ImageTask(machine=settings.config, images=[image], behaviour=behaviour)
    outcome = run(task.device(), task.work(1), doing=f"{case.test} {case.words}").parts[0]
    assert outcome.exit_code is not None and not outcome.errors
    return image, outcome.cycles, frozenset(event.address for event in outcome.events)


def measured(case: Case) -> Measured:
    """Run a case on RTL, once for all, and on the model."""
    image, cycles, executed = _on_rtl(case)
    options = {}
    if case.test == "digits":
        sections = digits.executed_sections(image, executed)
        options = {"sections": sections, "path": digits.control_path(case.settings.batch, image.config.columns)}
    return Measured(case, cycles, predict(image, memory_timing(case.settings), **options))


def table(rows: list[Measured]) -> str:
    """Return the table in Markdown."""
    return "\n".join(["| TEST | RTL | model | deviation |", "|---|---|---|---|", *(row.row for row in rows)])
