"""Comparison of the two ways to simulate replicated modules: all copies as one vector, or one by one."""

import os
from collections.abc import Callable, Mapping

from neuroncore_rtl.run.sim.simulation import SimulationFailed
from neuroncore_rtl.run.sim.vectors import LANES_VARIABLE, WAYS, lanes_choice, use_vectors

__all__ = ["WaysDiffer", "measured_ways", "side_by_side"]

Figures = Mapping[str, object]


class WaysDiffer(SimulationFailed):
    """A figure of a device depends on the way in which it is simulated; the message names the device and the figure."""


def measured_ways() -> tuple[str, ...]:
    """Return the ways to measure: the way that the environment selects, else all of `run.sim.vectors.WAYS`."""
    return (WAYS[not use_vectors()],) if os.environ.get(LANES_VARIABLE) else WAYS


def side_by_side(device: str, measure: Callable[[], tuple[Figures, Figures]]) -> dict[str, object]:
    """Measure a device in each way; raise WaysDiffer if a figure of the device depends on the way.

    `measure` simulates the device in the current way (`run.sim.vectors.use_vectors`). It returns figures of the device,
    and figures of the simulation, including `cycles_per_s`.

    Returns:
        The figures of the device; by way, a dict with the figures of the simulation; and with two ways, as `speed_up`,
        the ratio of their cycles per second.
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
