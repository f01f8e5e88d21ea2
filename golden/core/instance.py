"""Cores of an instance, each with an image in its own HBM, joined by collectives."""

from collections.abc import Sequence

import numpy as np

from neuroncore_rtl.golden.core.core import Core, CoreOutcome
from neuroncore_rtl.golden.core.network import Network
from neuroncore_rtl.spec.config import Config

__all__ = ["run_instance"]


def run_instance(
    config: Config,
    memories: Sequence[np.ndarray],
    *,
    bases: Sequence[int] | None = None,
    order: np.random.Generator | None = None,
    instructions: int = 5_000_000,
    traces: list | None = None,
) -> list[CoreOutcome]:
    """Boot all cores at time 0, run them until none can continue, and return their results.

    The core with the earliest time runs until its controller has written a register or executed some instructions. A
    collective takes no time: it ends on all cores when the last one reaches it.

    Each of the `memories`, uint8 [bytes], is used in place. `bases` are the addresses of the images, by default 0;
    `instructions` is the maximum for each controller. `traces` receives each core's list of retired records, which
    grows during the run. For `order` see `golden.core.machine.Machine`.
    """
    if len(memories) != config.cores:
        raise ValueError(f"memories must have one entry for each of {config.cores} cores, not {len(memories)}")
    network = Network(dict(enumerate(memories)))
    cores = [Core(config, memory, order, number=n, network=network) for n, memory in enumerate(memories)]
    if traces is not None:
        traces += [core.machine.trace for core in cores]
    runs = [core.steps(base, instructions) for core, base in zip(cores, bases or [0] * len(cores), strict=True)]
    times = {number: time for number, run in enumerate(runs) if (time := next(run, None)) is not None}
    while times:
        number = min(times, key=times.__getitem__)
        now = times[number]
        try:
            times[number] = runs[number].send(now)
        except StopIteration:
            del times[number]
        for woken in network.woken & times.keys():
            times[woken] = min(times[woken], now)
        network.woken.clear()
    return [core.outcome() for core in cores]
