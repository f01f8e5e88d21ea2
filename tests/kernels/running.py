"""Run programs and layers on golden; they must end without an error."""

import numpy as np
import pytest

from neuroncore_rtl.golden import arith, core
from neuroncore_rtl.kernels.program import HbmTensor, Image, build_image
from neuroncore_rtl.run.check import runs, unwritten
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.tb.check.ordering import find_unordered
from neuroncore_rtl.tb.cli.registry import command_named
from neuroncore_rtl.tb.tests.kernels.workbench import CoreWorkbench

__all__ = [
    "CONFIGS", "TINY", "every_config", "hbm_after", "layer_results", "read_values", "run_golden",
    "run_golden_instance", "run_ordered",
]  # fmt: skip

TINY, TALL = Config(rows=4, columns=4), Config(rows=16, columns=4, dma_engines=4)
CONFIGS = {"tiny": TINY, "odd": Config(rows=5, columns=6, dma_engines=3), "tall": TALL}
every_config = pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)


def run_golden(image: Image, order: np.random.Generator | None = None) -> core.CoreOutcome:
    """Return a core's outcome; `order` chooses between ready queues at random, default round robin."""
    outcome = core.Core(image.config, image.memory(), order).run(image.base)
    assert (outcome.exit_code, outcome.error) == (0, None)
    return outcome


def run_ordered(image: Image, order: np.random.Generator | None = None) -> core.CoreOutcome:
    """Return `run_golden`'s outcome; check that semaphores order all conflicts and that all bytes read were written."""
    outcome = run_golden(image, order)
    assert [*map(str, unwritten.find_unwritten(image, outcome.records))] == []
    sections = {}
    for part in runs.tile_runs(image, [address for _, address in outcome.records]):
        records = [(queue, at, image.locate(at)[1]) for queue, at in outcome.records[part]]
        # All orders that a section permits are checked, so one run of each section suffices.
        sections[frozenset(at for _, at, _ in records)] = records
    for records in sections.values():
        assert find_unordered(records, image.config) == []
    return outcome


def run_golden_instance(
    config: Config, images: list[Image], order: np.random.Generator | None = None
) -> list[core.CoreOutcome]:
    outcomes = core.run_instance(config, [image.memory() for image in images], order=order)
    assert [(outcome.exit_code, outcome.error) for outcome in outcomes] == [(0, None)] * config.cores
    return outcomes


def hbm_after(program, contents, order: np.random.Generator | None = None) -> np.ndarray:
    return run_ordered(build_image(program, contents), order).hbm


def read_values(tensor: HbmTensor, hbm: np.ndarray) -> np.ndarray:
    return arith.decode(np.ascontiguousarray(tensor.elements(hbm)), tensor.format)


def layer_results(words: str, config: Config, rng, run=run_ordered) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    test, *variables = words.split()
    bench, layer = CoreWorkbench(config), command_named(test)
    references = layer.build(bench, layer.settings(variables), rng)
    hbm = run(build_image(bench.program, bench.contents, runs=bench.runs), rng).hbm
    return {name: (read_values(place, hbm), exact) for name, (place, exact) in references.items()}
