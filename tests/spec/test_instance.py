"""Parameters of an instance: presets, ranges and errors."""

import pytest

from neuroncore_rtl.run.settings import UsageError
from neuroncore_rtl.spec.config import PRESETS
from neuroncore_rtl.spec.instance import INSTANCES, Instance, Topology, link_bytes_of
from neuroncore_rtl.tb.cli.registry import command_named
from neuroncore_rtl.tb.tests.links.options import instance_of

TORUS = {"topology": Topology.TORUS}


def test_presets_are_the_published_instances():
    found = {name: (i.chips, i.cores, i.link_bytes) for name, i in INSTANCES.items()}
    assert found == {
        "trn1": (16, 32, 64), "inf2": (12, 24, 64), "trainium1": (16, 32, 32), "inferentia2": (12, 24, 32),
    }  # fmt: skip
    assert INSTANCES["trn1"].with_overrides(topology=Topology.TORUS).directions == 4
    assert INSTANCES["inf2"].directions == 2


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"chips": 1}, ValueError, "chips must be between 2 and 64, not 1"),
        ({"chips": 65}, ValueError, "chips must be between 2 and 64, not 65"),
        ({"chips": 2.0}, TypeError, "chips must be an integer, not 2.0"),
        ({"link_bytes": 24}, ValueError, "link_bytes must be a power of two, not 24"),
        ({"link_bytes": 4}, ValueError, "link_bytes must be between 8 and 64, not 4"),
        ({"link_latency": 0}, ValueError, "link_latency must be between 1 and 64, not 0"),
        (TORUS | {"chips": 4, "width": 4}, ValueError, "chips .* must be a multiple of width=4, at least 8, not 4"),
        (TORUS | {"chips": 6, "width": 4}, ValueError, "chips .* must be a multiple of width=4, at least 8, not 6"),
        (TORUS | {"chips": 2, "width": 2}, ValueError, "chips .* must be a multiple of width=2, at least 4, not 2"),
        (TORUS | {"chips": 4, "width": 1}, ValueError, "width .* at least 2, not 1"),
    ],
)
def test_values_out_of_range_are_refused(options, error, message):
    with pytest.raises(error, match=f"^{message}$"):
        Instance(**options)


def test_links_are_half_as_wide_as_hbm():
    assert {name: link_bytes_of(config) for name, config in PRESETS.items()} == {
        "nano": 8, "fpga": 8, "tiny": 8, "small": 16, "medium": 32, "large": 64, "full": 64,
        "trainium1": 64, "inferentia2": 64,
    }  # fmt: skip


def test_a_named_instance_is_the_default_of_its_parts():
    def instance(*words):
        return instance_of(command_named("allreduce").settings(words))

    assert (instance().chips, instance().link_bytes) == (4, 16)
    inf2 = instance("INSTANCE=inf2")
    assert (inf2.chips, inf2.link_bytes, inf2.core.hbm_bytes, inf2.core.cores) == (12, 64, 64, 24)
    smaller = instance("INSTANCE=trn1", "CHIPS=6", "LINK_BYTES=8")
    assert (smaller.chips, smaller.link_bytes) == (6, 8)
    whole = instance("INSTANCE=trn1", "TARGET=core")
    assert (whole.chips, whole.link_bytes, whole.core.rows) == (16, 8, 4)
    with pytest.raises(UsageError, match="INSTANCE must be one of trn1, inf2, trainium1, inferentia2, not 'trn2'"):
        instance("INSTANCE=trn2")


def test_links_lead_round_the_rings():
    ring = Instance(chips=5)
    assert [ring.neighbour(chip, 0) for chip in range(5)] == [1, 2, 3, 4, 0]
    assert [ring.neighbour(chip, 1) for chip in range(5)] == [4, 0, 1, 2, 3]
    torus = Instance(chips=12, topology=Topology.TORUS, width=4)
    assert [torus.neighbour(5, direction) for direction in range(4)] == [6, 4, 9, 1]
    assert [torus.neighbour(11, direction) for direction in range(4)] == [8, 10, 3, 7]
