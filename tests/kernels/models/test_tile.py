"""Equal results on different machines for kernels with the same rows and columns (a tile)."""

import numpy as np
import pytest

from neuroncore_rtl.kernels.program import Program, build_image
from neuroncore_rtl.run.arrays import encode
from neuroncore_rtl.run.settings import UsageError
from neuroncore_rtl.spec.config import Config, preset_named
from neuroncore_rtl.tb.cli.registry import command_named
from neuroncore_rtl.tb.tests.kernels.workbench import CoreWorkbench
from neuroncore_rtl.tb.tests.learning import charlm, train
from tests.kernels.running import run_golden

MACHINES = ("PRESET=tiny", "PRESET=tiny ROWS=5 COLUMNS=6", "PRESET=small HBM_PORTS=2", "PRESET=full")


def build_trainer(settings):
    task = train.task_of(settings)
    trainer = train.trainer_of(settings, task, "sr")
    return trainer.image(task.images, task.labels, task.start, encode), [trainer.losses, *trainer.parameters]


def build_writer(settings):
    task = charlm.task_of(settings)
    model = charlm.model_of(settings, task)
    return charlm.image_of(model, task), [model.windows.losses, model.page.scores, model.page.written]


def layer(name):
    def build(settings):
        bench = CoreWorkbench(settings.config, tile=settings.tile)
        results = command_named(name).build(bench, settings, np.random.default_rng(3))
        return build_image(bench.program, bench.contents, runs=bench.runs), [place for place, _ in results.values()]

    return build


CASES = {
    "train": (build_trainer, "STEPS=3 BATCH=10 HIDDEN=9"),
    "charlm": (build_writer, "STEPS=2 SEQ=16 DIM=12 HIDDEN=20 PROMPT=So TOKENS=4"),
    "encoder_backward": (layer("encoder_backward"), "SEQ=20 DIM=24 HEADS=2 HIDDEN=40"),
    "attention": (layer("attention"), "SEQ=19 DIM=70 HEADS=1 CAUSAL=1"),
}


def bytes_of(test, machine, words=""):
    build, own = CASES[test]
    image, results = build(command_named(test).settings(f"{own} {machine} {words}".split()))
    hbm = run_golden(image).hbm
    return b"".join(np.ascontiguousarray(one.elements(hbm)).tobytes() for one in results)


@pytest.mark.parametrize(
    "test", [pytest.param(test, marks=[pytest.mark.slow] * (test in ("charlm", "encoder_backward"))) for test in CASES]
)
def test_the_same_bits_on_every_machine(test):
    found = [bytes_of(test, machine, "TILE=4") for machine in MACHINES]
    assert found == found[:1] * len(found)


def test_without_a_tile_sums_are_rounded_elsewhere():
    """Without a tile the results of the machines differ; otherwise the test above could not fail."""
    small = bytes_of("encoder_backward", "PRESET=tiny")
    assert bytes_of("encoder_backward", "PRESET=tiny", "TILE=4") == small != bytes_of("encoder_backward", "PRESET=full")


def test_a_tile_must_fit_the_array():
    with pytest.raises(ValueError, match="tile must be between 1 and the 5 rows and columns of the array, not 6"):
        Program(Config(rows=5, columns=6), tile=6)
    with pytest.raises(UsageError, match="tile must be between 1 and the 4 rows"):
        CoreWorkbench(preset_named("tiny"), tile=16)
