"""Groups of a waveform: one per link direction and one per engine."""

import pytest

from neuroncore_rtl.run.harness.collective_faults import link_name
from neuroncore_rtl.run.harness.link_view import engine_views, link_views
from neuroncore_rtl.run.view.instance_waves import collective_groups, instance_groups, traffic_groups
from neuroncore_rtl.spec.instance import Instance, Topology

INSTANCES = [Instance(chips=11), Instance(chips=6, topology=Topology.TORUS, width=3)]


def signals_of_views(instance: Instance, top: str) -> set[str]:
    text = link_views(instance, "fabric", "counters[{}]", disturbed="x[{}]", waves=True) + engine_views(instance)
    names = [part.split()[-2] for part in text.split("(.clk(clk)")[:-1] for part in [part + " ("]]
    return {f"{top}.{name}.counters" for name in names}


@pytest.mark.parametrize("instance", INSTANCES)
def test_groups_are_named_after_links_and_cores(instance):
    found = signals_of_views(instance, "collective")
    assert len(found) == instance.chips * instance.directions + instance.cores
    groups = collective_groups(found)
    links = [link_name(instance, wire).partition(" ->")[0] for wire in range(instance.chips * instance.directions)]
    assert [group for group in groups if group.startswith("link chip")] == links
    engines = [f"engine of core {core}" for core in range(instance.cores)]
    assert [group for group in groups if group.startswith("engine of")] == engines
    assert len(groups["links"]) == len(links) and len(groups["engines"]) == len(engines)
    assert [trace.alias for trace in groups["engines"]] == [f"core {core}" for core in range(instance.cores)]
    assert groups[links[-1]][0].signal.startswith(f"link_chip_{instance.chips - 1}_")


def test_traffic_has_links_alone():
    groups = traffic_groups(signals_of_views(INSTANCES[0], "traffic"))
    assert len([group for group in groups if group.startswith("link chip")]) == 22
    assert not [group for group in groups if "engine" in group]
    assert not [trace for trace in groups["link chip 3 up"] if "credits left" in trace.alias]


def test_a_waveform_that_is_too_shallow_has_no_views():
    assert set(collective_groups({"collective.clk"})) == {
        "run", "engines", "links", "disturbances, by wire", "HBM ports, two of each core",
    }  # fmt: skip


def test_of_one_core_its_insides_are_shown():
    inside = [*(f"queue{queue}.clk" for queue in range(6)), "dma0.clk", "dma1.clk", "axi0.clk"]
    found = signals_of_views(INSTANCES[0], "machines") | {f"machines.log_{core}.clk" for core in range(22)}
    found |= {f"machines.cores.chip_{chip}.core1.{name}" for chip in range(11) for name in inside}
    without = instance_groups(found)
    assert len([group for group in without if group.startswith("link chip")]) == 22
    assert len(without["cores"]) == 3 * 22 and not [group for group in without if group.startswith("core ")]
    groups = {name: traces for name, traces in instance_groups(found, core=7).items() if name.startswith("core 7: ")}
    assert {"core 7: queue collective", "core 7: queue dma1", "core 7: vector: steps"} < set(groups)
    signals = [trace.signal for traces in groups.values() for trace in traces]
    assert all(signal.startswith(("cores.chip_3.core1.", "log_7.")) or signal == "cycle" for signal in signals)
    assert "log_7.over" in signals and "cores.chip_3.core1.axi__0__arvalid" in signals
    assert "cores.chip_3.core1.queue5.waiting" in signals
