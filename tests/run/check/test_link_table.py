"""Links in reports: each event is attributed to one wire."""

import pytest

from neuroncore_rtl.run.check.link_table import dead_links, link_of, link_summary, link_table, opposite
from neuroncore_rtl.run.harness.collective_faults import link_name
from neuroncore_rtl.spec.instance import Instance, Topology

RING = Instance(chips=3)
TORUS = Instance(chips=12, topology=Topology.TORUS, width=4)


def counters(**counted):
    return {"flits": 0, "replays": 0, "crc_errors": 0, "discarded": 0, "idle": 0, "stalled": 0} | counted


@pytest.mark.parametrize("instance", [RING, TORUS, Instance(chips=2)])
def test_a_link_has_two_wires(instance):
    wires = range(instance.chips * instance.directions)
    for wire in wires:
        other = opposite(instance, wire)
        assert other != wire and opposite(instance, other) == wire
        assert link_of(instance, other) == link_of(instance, wire)
        ends = [link_name(instance, one).split("chip ") for one in (wire, other)]
        assert ends[0][1].split()[0] == ends[1][2] and ends[1][1].split()[0] == ends[0][2]
    assert len({link_of(instance, wire) for wire in wires}) == len(wires) // 2


def test_errors_belong_to_the_wire_and_retries_to_its_sender():
    found = [counters() for _ in range(6)]
    found[0] = counters(flits=30, replays=2, stalled=7)  # chip 0 sends up to chip 1
    found[3] = counters(crc_errors=2, discarded=5)  # chip 1's receiver from chip 0
    table = link_table(RING, found, 120, dead=[5])
    assert list(table) == [link_name(RING, wire).removeprefix("link ") for wire in range(6)]
    counts = {"flits": 30, "retries": 2, "crc_errors": 2, "discarded": 5, "stalled_cycles": 7}
    assert table["chip 0 up -> chip 1"] == {"utilisation": 0.25, "dead": False} | counts
    assert not table["chip 1 down -> chip 0"]["crc_errors"]
    assert [name for name, row in table.items() if row["dead"]] == ["chip 1 up -> chip 2", "chip 2 down -> chip 1"]


def test_the_summary_is_short_and_names_the_worst():
    found = [counters(flits=wire, replays=wire // 20 * wire) for wire in range(48)]
    summary = link_summary(TORUS, link_table(TORUS, found, 100, dead=[1, link_of(TORUS, 1)]), 9)
    assert summary["link_utilisation"] == {"mean": 0.235, "busiest": 0.47, "link": "chip 11 -row -> chip 7"}
    assert summary["links_with_retries"] == 28
    assert [(row["link"], row["retries"]) for row in summary["most_retries"]] == [
        ("chip 11 -row -> chip 7", 94), ("chip 11 +row -> chip 3", 92), ("chip 11 -column -> chip 10", 90),
        ("chip 11 +column -> chip 8", 88),
    ]  # fmt: skip
    assert summary["stalled_for_credits"] == {"most_cycles": 0} and summary["disturbed_frames"] == 9
    assert summary["dead_links"] == ["link chip 3 +column -> chip 0"]
    assert dead_links(TORUS, []) == []
    assert "links_with_retries" not in link_summary(RING, link_table(RING, [counters()] * 6, 0), 0)
