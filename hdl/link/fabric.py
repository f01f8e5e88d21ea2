"""Fabric: the interconnect between the cores of an instance, a node per chip and the wires between nodes.

core -- LinkNode == Wire ==> LinkNode -- core
                <== Wire ==
"""

from collections.abc import Sequence
from functools import partial

from amaranth import Module
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.link.counters import LinkCounters
from neuroncore_rtl.hdl.link.end import CREDITS
from neuroncore_rtl.hdl.link.flit import flit_stream
from neuroncore_rtl.hdl.link.node import LinkNode
from neuroncore_rtl.hdl.link.route import LOCAL_PORTS, ring_sizes
from neuroncore_rtl.hdl.link.wire import DISTURBANCE, FLIP_BITS, Wire
from neuroncore_rtl.hdl.verilog.hierarchy import shared
from neuroncore_rtl.spec.instance import Instance
from neuroncore_rtl.spec.link import CHANNELS

__all__ = ["Fabric", "add_node", "add_wires", "connect_disturbance", "disturbance_ports"]


def add_node(m: Module, name: str, instance: Instance, platform):
    """Add a `LinkNode` to a module, and return the object that carries its ports."""
    shape = "x".join(map(str, ring_sizes(instance)))
    module = f"link_node_{shape}_{instance.link_bytes}_{instance.link_latency}"
    return shared(m, name, module, partial(LinkNode, instance), platform)


def add_wires(m: Module, instance: Instance, chips: Sequence, disturbance: Sequence, platform) -> None:
    """Add the wires between chips to a module.

    Arguments:
        m: the module.
        instance: the machine's chips.
        chips: the `LinkNode` of each chip.
        disturbance: one `DISTURBANCE` per wire, in the order of `Fabric`.
        platform: the argument of `elaborate`.
    """
    size = instance.link_bytes, instance.link_latency
    for number, befalls in enumerate(disturbance):
        chip, direction = divmod(number, instance.directions)
        name = f"wire_{chip}_{direction}"
        wire = shared(m, name, "link_wire_{}_{}".format(*size), partial(Wire, *size), platform)
        other, side = chips[instance.neighbour(chip, direction)], direction ^ 1
        m.d.comb += [
            wire.i.eq(chips[chip].tx[direction]),
            wire.disturbance.eq(befalls),
            other.rx[side].eq(wire.o),
            other.rx_present[side].eq(wire.present),
        ]


def disturbance_ports(wires: int) -> dict[str, wiring.Member]:
    """Return the fields of `DISTURBANCE` as ports, with one element per wire.

    `repeat` is a keyword of Verilog, so that field is called `repeated` here.
    """
    return {
        "flip": In(wires),
        "flip_bit": In(data.ArrayLayout(FLIP_BITS, wires)),
        "drop": In(wires),
        "repeated": In(wires),
        "cut": In(wires),
    }


def connect_disturbance(m: Module, ports, disturbance: Sequence) -> None:
    """Connect the ports of `disturbance_ports` to the `disturbance` of each wire."""
    for wire, befalls in enumerate(disturbance):
        m.d.comb += [
            befalls.flip.eq(ports.flip[wire]),
            befalls.flip_bit.eq(ports.flip_bit[wire]),
            befalls.drop.eq(ports.drop[wire]),
            befalls.repeat.eq(ports.repeated[wire]),
            befalls.cut.eq(ports.cut[wire]),
        ]


class Fabric(wiring.Component):
    """Carries flits between the cores of an instance, in order for each source, destination and channel.

    Without other traffic a flit takes `Router.LATENCY` cycles per router, plus, per link, the latencies of both ends
    and the wire.

    Wire w starts at chip w // directions in direction w % directions (see `Router`). A link end has the number of the
    wire that it drives.

    Ports:
        i: streams of flits from the cores; stream CHANNELS * core + channel. The destination must be a core of the
            instance.
        o: streams of flits to the cores, with the same index. See `Router.local_out`.
        disturbance: faults of each wire (`DISTURBANCE`).
        dead, credits_used, counters: of each link end; see `LinkEnd`.
    """

    def __init__(self, instance: Instance):
        self.instance = instance
        self.wires = wires = instance.chips * instance.directions
        flits = flit_stream(instance.link_bytes)
        super().__init__(
            {
                "i": In(flits).array(CHANNELS * instance.cores),
                "o": Out(flits).array(CHANNELS * instance.cores),
                "disturbance": In(DISTURBANCE).array(wires),
                "dead": Out(wires),
                "credits_used": Out(data.ArrayLayout(CREDITS, wires)),
                "counters": Out(LinkCounters).array(wires),
            }
        )

    def elaborate(self, platform):
        m = Module()
        instance = self.instance
        nodes = []
        for chip in range(instance.chips):
            node = add_node(m, f"node_{chip}", instance, platform)
            m.d.comb += node.chip.eq(chip)
            for port in range(LOCAL_PORTS):
                wiring.connect(m, wiring.flipped(self.i[LOCAL_PORTS * chip + port]), node.i[port])
                wiring.connect(m, node.o[port], wiring.flipped(self.o[LOCAL_PORTS * chip + port]))
            nodes.append(node)

        add_wires(m, instance, nodes, self.disturbance, platform)
        for wire in range(self.wires):
            chip, direction = divmod(wire, instance.directions)
            m.d.comb += [
                self.dead[wire].eq(nodes[chip].dead[direction]),
                self.credits_used[wire].eq(nodes[chip].credits_used[direction]),
                self.counters[wire].eq(nodes[chip].counters[direction]),
            ]
        return m
