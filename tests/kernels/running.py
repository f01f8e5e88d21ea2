"""Images of programs on golden, which must come to their end without an error."""

import numpy as np

from neuroncore_rtl.golden.core import Core, CoreOutcome, run_instance
from neuroncore_rtl.kernels.program import Image
from neuroncore_rtl.spec.config import Config

__all__ = ["finished", "finished_instance"]


def finished(image: Image, order: np.random.Generator | None = None) -> CoreOutcome:
    """Return what a core leaves; queues go on as `order` draws it wherever semaphores let them, else in turn."""
    outcome = Core(image.config, image.memory(), order).run(image.base)
    assert (outcome.exit_code, outcome.error) == (0, None)
    return outcome


def finished_instance(
    config: Config, images: list[Image], order: np.random.Generator | None = None
) -> list[CoreOutcome]:
    """Return what the cores of an instance leave, each with its image."""
    outcomes = run_instance(config, [image.memory() for image in images], order=order)
    assert [(outcome.exit_code, outcome.error) for outcome in outcomes] == [(0, None)] * config.cores
    return outcomes
