"""The ways to simulate what there is many times, as vectors and one after the other, measured side by side."""

import os
from collections.abc import Callable, Mapping

from neuroncore_rtl.run.sim.simulation import SimulationFailed
from neuroncore_rtl.run.sim.vectors import LANES_VARIABLE, WAYS, lanes_choice, use_vectors

__all__ = ["WaysDiffer", "measured_ways", "side_by_side"]

Figures = Mapping[str, object]


class WaysDiffer(SimulationFailed):
    """A device did something else in one way than in the other; the message says which device, and what."""


def measured_ways() -> tuple[str, ...]:
    """Return those of `run.sim.vectors.WAYS` that are measured: the one that the environment names, else all."""
    return (WAYS[not use_vectors()],) if os.environ.get(LANES_VARIABLE) else WAYS


def side_by_side(device: str, measure: Callable[[], tuple[Figures, Figures]]) -> dict[str, object]:
    """Measure a device in each way.

    Arguments:
        device: what it is called in the message of an error.
        measure: simulates it, with vectors if `run.sim.vectors.use_vectors`; returns figures of the device, which
            no way may change, and figures of the simulation, `cycles_per_s` among them.

    Returns:
        The figures of the device; a dict of those of the simulation by the name of each way; and as `speed_up`, where
        there are two, how many times as many cycles a second the first has.

    Raises:
        WaysDiffer: a figure of the device is not the same in all of them.
    """
    found, simulations = {}, {}
    for way in measured_ways():
        with lanes_choice(way):
            found[way], simulations[way] = measure()
    first, *others = found.values()
    for name in first:
        if any(other[name] != first[name] for other in others):
            values = " and ".join(f"{figures[name]} ({way})" for way, figures in found.items())
            raise WaysDiffer(f"{name} of the {device} must be the same in both ways, not {values}")
    speeds = [simulation["cycles_per_s"] for simulation in simulations.values()]
    return {**first, **simulations, **({"speed_up": speeds[0] / speeds[1]} if others else {})}
