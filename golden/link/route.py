"""The way of a flit: the shortest, one dimension after the other, on virtual channels that leave no circle to wait in.

The chips of a ring are one dimension, with the directions 0 (up, to the next chip) and 1 (down). Those of a torus are
two: columns, with the directions 0 (+) and 1 (-) along a row, and rows, with the directions 2 (+) and 3 (-).
"""

from collections.abc import Iterator
from typing import NamedTuple

from neuroncore_rtl.spec.instance import Instance, Topology
from neuroncore_rtl.spec.link import CORES_PER_CHIP

__all__ = ["Hop", "links", "route"]


class Hop(NamedTuple):
    """A flit leaves a chip over the link of a direction, on a virtual channel."""

    chip: int
    direction: int
    vc: int


def route(instance: Instance, source: int, destination: int, channel: int) -> list[Hop]:
    """Return the hops from a core to another; none if both are on one chip.

    A torus is crossed along the row first. Where both ways round a ring are equally long, channel 0 goes up and
    channel 1 down. Virtual channel 0 is used until a ring's end is passed, and 1 from the link on that passes it; each
    dimension begins with 0 anew.

    Arguments:
        instance: the chips and how they are tied.
        source, destination: numbers of cores.
        channel: of the flit, 0 or 1.
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
    """Yield the chip and the direction of every link, seen from where its flits come."""
    for chip in range(instance.chips):
        for direction in range(instance.directions):
            yield chip, direction


def _steps(size: int, place: int, end: int, channel: int) -> int:
    """Return the steps from a place of a ring to another: upward if positive, downward if negative."""
    up = (end - place) % size
    return up if 2 * up < size or (2 * up == size and channel == 0) else up - size


def _sizes(instance: Instance) -> list[int]:
    """Return the lengths of the rings, by dimension."""
    if instance.topology == Topology.RING:
        return [instance.chips]
    return [instance.width, instance.chips // instance.width]


def _places(instance: Instance, chip: int) -> list[int]:
    """Return where a chip is, by dimension: its number in a ring, its column and its row in a torus."""
    if instance.topology == Topology.RING:
        return [chip]
    return [chip % instance.width, chip // instance.width]
