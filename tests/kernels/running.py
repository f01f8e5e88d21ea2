"""Programs and layers on golden, which must end without an error."""

import numpy as np

from neuroncore_rtl.golden.arith import decode
from neuroncore_rtl.golden.core import Core, CoreOutcome, run_instance
from neuroncore_rtl.kernels.program import HbmTensor, Image, build_image
from neuroncore_rtl.run.check.runs import tile_runs
from neuroncore_rtl.run.check.unwritten import find_unwritten
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.tb.check.ordering import find_unordered
from neuroncore_rtl.tb.cli.registry import command_named
from neuroncore_rtl.tb.tests.kernels.workbench import CoreWorkbench

__all__ = ["finished", "finished_instance", "finished_ordered", "hbm_after", "layer_results", "read"]


def finished(image: Image, order: np.random.Generator | None = None) -> CoreOutcome:
    """Return what a core leaves; queues go on as `order` draws it wherever semaphores let them, else in turn."""
    outcome = Core(image.config, image.memory(), order).run(image.base)
    assert (outcome.exit_code, outcome.error) == (0, None)
    return outcome


def finished_ordered(image: Image, order: np.random.Generator | None = None) -> CoreOutcome:
    """Return what `finished` does of a program that leaves nothing to chance: semaphores order what touches the same
    bytes, and all that is read on chip was written."""
    outcome = finished(image, order)
    assert [*map(str, find_unwritten(image, outcome.records))] == []
    sections = {}
    for part in tile_runs(image, [address for _, address in outcome.records]):
        records = [(queue, at, image.locate(at)[1]) for queue, at in outcome.records[part]]
        # What is judged is every order that a section allows, so any of its runs will do.
        sections[frozenset(at for _, at, _ in records)] = records
    for records in sections.values():
        assert find_unordered(records, image.config) == []
    return outcome


def finished_instance(
    config: Config, images: list[Image], order: np.random.Generator | None = None
) -> list[CoreOutcome]:
    """Return what the cores of an instance leave, each with its image."""
    outcomes = run_instance(config, [image.memory() for image in images], order=order)
    assert [(outcome.exit_code, outcome.error) for outcome in outcomes] == [(0, None)] * config.cores
    return outcomes


def hbm_after(program, contents, order: np.random.Generator | None = None) -> np.ndarray:
    """Return HBM after `finished_ordered` of a program with these contents."""
    return finished_ordered(build_image(program, contents), order).hbm


def read(tensor: HbmTensor, hbm: np.ndarray) -> np.ndarray:
    """Return the numbers of a tensor, float64."""
    return decode(np.ascontiguousarray(tensor.elements(hbm)), tensor.format)


def layer_results(words: str, config: Config, rng, run=finished_ordered) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return the results of a layer's TEST with its variables: by name, what golden leaves and what float64 gives."""
    test, *variables = words.split()
    bench, layer = CoreWorkbench(config), command_named(test)
    references = layer.build(bench, layer.settings(variables), rng)
    hbm = run(build_image(bench.program, bench.contents, runs=bench.runs), rng).hbm
    return {name: (read(place, hbm), exact) for name, (place, exact) in references.items()}
