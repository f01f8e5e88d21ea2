"""Picture of an instance."""

import duckdb
import numpy as np
import pytest

from neuroncore_rtl.run.check.link_table import link_table
from neuroncore_rtl.run.view.link_geometry import CHIP_RADIUS, LANES, chip_places, link_arrows, point_at
from neuroncore_rtl.run.view.link_picture import draw_links
from neuroncore_rtl.spec.instance import Instance, Topology

SHAPES = [
    *(Instance(chips=chips) for chips in (2, 3, 4, 16, 64)),
    *(Instance(chips=c, topology=Topology.TORUS, width=w) for c, w in ((4, 2), (6, 2), (6, 3), (16, 4), (12, 6))),
]


def name(instance):
    return f"{instance.topology}-{instance.chips}-{instance.width}"


of_each_shape = pytest.mark.parametrize("instance", SHAPES, ids=name)


@of_each_shape
def test_every_wire_has_an_arrow_between_its_chips_apart_from_others(instance):
    centres, arrows = chip_places(instance), link_arrows(instance)
    assert sorted(arrows) == list(range(instance.chips * instance.directions))
    for wire, arrow in arrows.items():
        chip, direction = divmod(wire, instance.directions)
        for point, end in ((arrow.points[0], chip), (arrow.points[-1], instance.neighbour(chip, direction))):
            assert CHIP_RADIUS < np.linalg.norm(point - centres[end]) < CHIP_RADIUS + 0.06
        assert np.linalg.norm(arrow.points[:, None] - centres, axis=2).min() > CHIP_RADIUS
        assert np.linalg.norm(arrow.side) == pytest.approx(1)
    places = [point_at(arrow.points, arrow.mark) for arrow in arrows.values()]
    apart = np.linalg.norm(np.array(places)[:, None] - places, axis=2) + 9 * np.eye(len(places))
    assert apart.min() > 2 * LANES - 1e-9


@pytest.mark.parametrize("instance", [SHAPES[2], SHAPES[-2]], ids=name)
def test_a_picture_is_written(instance, tmp_path):
    from matplotlib import image

    counters = dict.fromkeys(("crc_errors", "discarded", "idle", "stalled"), 0)
    wires = instance.chips * instance.directions
    rows = [{"flits": 10 * wire, "replays": wire % 3} | counters for wire in range(wires)]
    table = link_table(instance, rows, 10 * wires, dead=[1])
    pixels = image.imread(draw_links(tmp_path / "plots" / "links.png", instance, table, "title", "what it is"))
    assert min(pixels.shape[:2]) > 400
    dead = np.abs(pixels[..., :3] - np.array([0xD3, 0x26, 0x3C]) / 255).max(axis=2) < 0.02
    assert dead.any()
    data = duckdb.read_parquet(str(tmp_path / "plots" / "links.parquet")).project("link, flits, dead").fetchall()
    assert data == [(name, row["flits"], row["dead"]) for name, row in table.items()]
