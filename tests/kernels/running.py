"""Images of programs on golden, which must come to their end without an error."""

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from neuroncore_rtl.golden.core import Core, CoreOutcome, run_instance
from neuroncore_rtl.kernels.program import Image
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.tb.check.ordering import find_unordered
from neuroncore_rtl.tb.check.unwritten import find_unwritten

__all__ = ["finished", "finished_instance", "finished_ordered"]

Executed = Sequence[tuple[int, int]]
"""Queue and address of each record that was executed."""


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
    for records in _runs(image, outcome.records):
        found = find_unordered([(queue, at, image.locate(at)[1]) for queue, at in records], image.config)
        assert found == []
    return outcome


def _runs(image: Image, records: Executed) -> Iterator[Executed]:
    """Return the records of each run of a section, which nothing outlasts."""
    sections = {block.address: block.section for block in image.blocks}
    sizes = Counter()
    for block in image.blocks:
        sizes[block.section] += block.count
    while records:
        first = max(address for address in sections if address <= records[0][1])
        size = sizes[sections[first]]
        yield records[:size]
        records = records[size:]


def finished_instance(
    config: Config, images: list[Image], order: np.random.Generator | None = None
) -> list[CoreOutcome]:
    """Return what the cores of an instance leave, each with its image."""
    outcomes = run_instance(config, [image.memory() for image in images], order=order)
    assert [(outcome.exit_code, outcome.error) for outcome in outcomes] == [(0, None)] * config.cores
    return outcomes
