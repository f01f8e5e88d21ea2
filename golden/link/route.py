"""Routing of flits: shortest path, one dimension after the other, virtual channels against deadlock.

A ring of chips is one dimension, with direction 0 up, to the next chip, and 1 down. A torus has two dimensions:
directions 0 (+) and 1 (-) along a row, 2 (+) and 3 (-) along a column.
"""

from collections.abc import Iterator
from typing import NamedTuple

from neuroncore_rtl.spec.instance import Instance, Topology
from neuroncore_rtl.spec.link import CORES_PER_CHIP

__all__ = ["Hop", "links", "route"]


class Hop(NamedTuple):
    """One link of a route, given by the sending chip, the direction and the virtual channel."""

    chip: int
    direction: int
    vc: int


def route(instance: Instance, source: int, destination: int, channel: int) -> list[Hop]:
    """Return the hops between two cores; none on one chip.

    A torus is crossed along the row first. If both ways round a ring are equally long, channel 0 uses up and channel 1
    down. In each dimension a flit starts on virtual channel 0, and changes to 1 on the link that passes the ring's end.
    """
    chip, goal = source // CORES_PER_CHIP, destination // CORES_PER_CHIP
    hops = []
    for dimension, size in enumerate(_sizes(instance)):
        place, end = _places(instance, chip)[dimension], _places(instance, goal)[dimension]
        steps = _steps(size, place, end, channel)
        step = 1 if steps > 0 else -1
        vc = 0
        for _ in range(abs(steps)):
            place += step
            if not 0 <= place < size:
                place, vc = place % size, 1
            direction = 2 * dimension + (step < 0)
            hops.append(Hop(chip, direction, vc))
            chip = instance.neighbour(chip, direction)
    return hops


def links(instance: Instance) -> Iterator[tuple[int, int]]:
    """Yield the sending chip and the direction of every link."""
    for chip in range(instance.chips):
        for direction in range(instance.directions):
            yield chip, direction


def _steps(size: int, place: int, end: int, channel: int) -> int:
    """Return the number of links from position `place` to `end` on a ring, positive upward, negative downward."""
    up = (end - place) % size
    return up if 2 * up < size or (2 * up == size and channel == 0) else up - size


def _sizes(instance: Instance) -> list[int]:
    if instance.topology == Topology.RING:
        return [instance.chips]
    return [instance.width, instance.chips // instance.width]


def _places(instance: Instance, chip: int) -> list[int]:
    """Return a chip's index in a ring, or its column and row in a torus."""
    if instance.topology == Topology.RING:
        return [chip]
    return [chip % instance.width, chip // instance.width]
