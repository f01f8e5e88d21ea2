"""Geometry of an instance's picture: chips on a circle or in a grid, and the arrows of links.

The unit of length is the distance of neighbouring chips.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from neuroncore_rtl.spec.instance import Instance, Topology

__all__ = ["CHIP_RADIUS", "Arrow", "chip_places", "head_of", "link_arrows", "outline_of", "point_at"]

CHIP_RADIUS = 0.19

LANES = 0.052
"""Distance of each of the two arrows of a link from the middle between them."""

STRAIGHT = 24


@dataclass(frozen=True)
class Arrow:
    """Arrow of a wire; `points` of its line are [n, 2], from the sending chip to the receiving one.

    Arguments:
        side: unit vector from the middle of the arrow towards free space for text.
        mark: position of a number on the arrow, from 0 (start) to 1 (end); the opposite arrow has another position.
        long: whether the link wraps around the torus; its arrow is drawn below arrows between neighbours.
    """

    points: np.ndarray
    side: np.ndarray
    mark: float = 0.36
    long: bool = False


def chip_places(instance: Instance) -> np.ndarray:
    """Return the chips' centres, [chips, 2]."""
    chips = np.arange(instance.chips)
    if instance.topology == Topology.RING:
        return _on_circle(instance, chips, _ring_radius(instance))
    return np.stack([chips % instance.width, -(chips // instance.width)], axis=1).astype(float)


def link_arrows(instance: Instance) -> dict[int, Arrow]:
    """Return the arrow of each wire."""
    return dict(_ring_arrows(instance) if instance.topology == Topology.RING else _torus_arrows(instance))


def _ring_radius(instance: Instance) -> float:
    return max(0.8, instance.chips / (2 * np.pi) * 1.05)


def _on_circle(instance: Instance, places: np.ndarray, radius: float) -> np.ndarray:
    """Return points of a circle; `places` count chips."""
    angles = np.pi / 2 - 2 * np.pi * places / instance.chips
    return radius * np.stack([np.cos(angles), np.sin(angles)], axis=1)


def _ring_arrows(instance: Instance) -> Iterator[tuple[int, Arrow]]:
    """Yield the arrows of a ring as arcs; the arrows of the upward direction are outside the others."""
    radius = _ring_radius(instance)
    for chip in range(instance.chips):
        for direction, side in ((0, 1), (1, -1)):
            lane = radius + side * LANES
            gap = (CHIP_RADIUS + 0.035) / lane * instance.chips / (2 * np.pi)
            points = _on_circle(instance, np.linspace(chip + gap, chip + 1 - gap, 2 * STRAIGHT), lane)
            # A link is the lower chip's wire up and the other chip's wire down.
            wire = 2 * chip if direction == 0 else 2 * ((chip + 1) % instance.chips) + 1
            middle = point_at(points, 0.5)
            yield wire, Arrow(points if direction == 0 else points[::-1], side * middle / np.linalg.norm(middle))


def _torus_arrows(instance: Instance) -> Iterator[tuple[int, Arrow]]:
    """Yield the arrows of a torus: straight in the grid; wrap-around links run between rows or columns."""
    columns, rows = instance.width, instance.chips // instance.width
    for chip, centre in enumerate(chip_places(instance)):
        row, column = divmod(chip, columns)
        for dimension, (place, size) in enumerate(((column, columns), (row, rows))):
            ahead = np.array(((1.0, 0.0), (0.0, -1.0))[dimension])
            across = np.array(((0.0, 1.0), (1.0, 0.0))[dimension])
            step = ((column + 1) % columns - column, (row + 1) % rows - row)[dimension]
            other = chip + step * (1, columns)[dimension]
            for direction, side in ((0, 1), (1, -1)):
                if place + 1 < size:
                    ends = np.array([CHIP_RADIUS + 0.03, 1 - CHIP_RADIUS - 0.03])
                    points = centre + ends[:, None] * ahead + side * LANES * across
                    points, mark = np.linspace(points[0], points[1], STRAIGHT), 0.2
                else:
                    points = _way_round(centre, ahead, across, size, side * LANES)
                    mark = 0.5 / _lengths(points)[-1]
                wire = (chip if direction == 0 else other) * instance.directions + 2 * dimension + direction
                yield wire, Arrow(points if direction == 0 else points[::-1], side * across, mark, place + 1 == size)


def _way_round(centre: np.ndarray, ahead: np.ndarray, across: np.ndarray, size: int, lane: float) -> np.ndarray:
    """Return the path of a wrap-around link: out of the grid, back beside the row or column, to its first chip.

    `centre` is the last chip's; the way back is in the direction `across`, at `distance` from the row.
    """
    out, distance = CHIP_RADIUS + 0.03, 0.5
    turn = np.linspace(-np.pi / 2, np.pi / 2, 24)
    radius = distance / 2 - lane
    # Pass beyond the ways back of the other dimension, which are only on one side of the grid.
    beyond = {True: 0.42, False: 0.24}
    past_end, past_begin = beyond[bool(ahead[0])], beyond[not ahead[0]]
    far = np.stack([past_end + radius * np.cos(turn), distance / 2 + radius * np.sin(turn)], axis=1)
    near = np.stack([-(size - 1) - past_begin - radius * np.cos(turn), distance / 2 - radius * np.sin(turn)], axis=1)
    plane = np.concatenate(
        [[[out, lane]], far, np.linspace(far[-1], near[0], 24 * size), near, [[-(size - 1) - out, lane]]]
    )
    return centre + plane[:, :1] * ahead + plane[:, 1:] * across


def _lengths(points: np.ndarray) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(np.linalg.norm(np.diff(points, axis=0), axis=1))])


def point_at(points: np.ndarray, place: float) -> np.ndarray:
    """Return a point of a line; `place`: from 0 to 1."""
    lengths = _lengths(points)
    return np.array([np.interp(place * lengths[-1], lengths, points[:, axis]) for axis in (0, 1)])


def head_of(points: np.ndarray, width: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the centre line of an arrow's shaft, and the corners of its head."""
    head = 0.05 + 1.1 * width
    lengths = _lengths(points)
    neck = max(1 - head / lengths[-1], 0.1)
    shaft = np.concatenate([points[lengths < neck * lengths[-1]], [point_at(points, neck)]])
    forward = (points[-1] - shaft[-1]) / np.linalg.norm(points[-1] - shaft[-1])
    sideways = np.array([-forward[1], forward[0]]) * (width / 2 + 0.032)
    return shaft, np.array([shaft[-1] + sideways, points[-1], shaft[-1] - sideways])


def outline_of(shaft: np.ndarray, head: np.ndarray, width: float) -> np.ndarray:
    """Return the outline of an arrow's shaft and head."""
    along = np.gradient(shaft, axis=0)
    along /= np.linalg.norm(along, axis=1, keepdims=True)
    normal = np.stack([-along[:, 1], along[:, 0]], axis=1) * width / 2
    return np.concatenate([shaft + normal, head, (shaft - normal)[::-1]])
