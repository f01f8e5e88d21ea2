"""Routes: shortest, dimension-ordered, and free of cyclic buffer dependences (deadlock)."""

from collections.abc import Iterable
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise

import pytest

from neuroncore_rtl.golden.link import Hop, links, route
from neuroncore_rtl.spec.instance import Instance, Topology

SHAPES = [(w, r) for w in range(2, 33) for r in range(2, 33) if w * r <= 32 or (w, r) in ((2, 32), (8, 8), (32, 2))]
"""Widths and heights of tori, in chips."""


def ring(chips: int) -> Instance:
    return Instance(chips=chips, width=1)


def torus(width: int, rows: int) -> Instance:
    return Instance(chips=width * rows, topology=Topology.TORUS, width=width)


def routes(instance: Instance) -> Iterable[tuple[int, int, list[Hop]]]:
    for source in range(instance.chips):
        for destination in range(instance.chips):
            for channel in (0, 1):
                yield source, destination, route(instance, 2 * source, 2 * destination + 1, channel)


def distances(instance: Instance, source: int) -> dict[int, int]:
    found, edge = {source: 0}, [source]
    while edge:
        following = {instance.neighbour(chip, d) for chip in edge for d in range(instance.directions)} - found.keys()
        found |= dict.fromkeys(following, max(found.values()) + 1)
        edge = list(following)
    return found


def check_no_circle(ways: Iterable[list[Hop]]) -> int:
    waits = {}
    for way in ways:
        for held, wanted in pairwise(way):
            waits.setdefault(held, set()).add(wanted)
    TopologicalSorter(waits).prepare()
    return sum(map(len, waits.values()))


SAMPLES = [ring(2), ring(3), ring(4), ring(7), ring(16), torus(2, 2), torus(4, 4), torus(3, 5), torus(2, 8)]


@pytest.mark.parametrize("instance", SAMPLES, ids=lambda i: f"{i.topology}-{i.chips}-{i.width}")
def test_every_route_is_a_shortest_one_and_the_ends_of_a_link_are_opposite(instance):
    for source, destination, way in routes(instance):
        chip = source
        for hop in way:
            assert hop.chip == chip
            chip = instance.neighbour(hop.chip, hop.direction)
        assert chip == destination
        assert len(way) == distances(instance, source)[destination]
    for chip, direction in links(instance):
        assert instance.neighbour(instance.neighbour(chip, direction), direction ^ 1) == chip


def test_known_routes():
    # Where both ways are equally long, the channel decides.
    assert [hop.direction for hop in route(ring(4), 0, 4, 0)] == [0, 0]
    assert [hop.direction for hop in route(ring(4), 0, 4, 1)] == [1, 1]
    assert [hop.direction for hop in route(torus(4, 4), 0, 20, 0)] == [0, 0, 2, 2]
    assert [hop.direction for hop in route(torus(4, 4), 0, 20, 1)] == [1, 1, 3, 3]
    # The end of a ring changes the virtual channel; rows begin with 0; cores of a chip need no link.
    assert route(ring(6), 8, 2, 0) == [Hop(4, 0, 0), Hop(5, 0, 1), Hop(0, 0, 1)]
    assert route(ring(6), 2, 8, 1) == [Hop(1, 1, 0), Hop(0, 1, 1), Hop(5, 1, 1)]
    assert route(ring(6), 4, 8, 0) == [Hop(2, 0, 0), Hop(3, 0, 0)]
    assert route(ring(2), 2, 0, 0) == [Hop(1, 0, 1)]
    assert route(torus(4, 4), 6, 8, 0) == [Hop(3, 0, 1), Hop(0, 2, 0)]
    assert route(ring(4), 4, 5, 0) == route(ring(4), 4, 4, 1) == []


def test_nothing_waits_in_a_circle():
    for instance in (*map(ring, range(2, 65)), *(torus(width, rows) for width, rows in SHAPES)):
        assert check_no_circle(way for *_, way in routes(instance)) or instance.chips < 4


@pytest.mark.parametrize("instance", [ring(5), torus(5, 2), torus(2, 5)])
def test_a_circle_would_be_seen(instance):
    with pytest.raises(CycleError):
        check_no_circle([hop._replace(vc=0) for hop in way] for *_, way in routes(instance))
