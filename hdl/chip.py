"""Chip: two cores and their node on the links.

core 0 --+
             +-- LinkNode == one link per direction
    core 1 --+
"""

from functools import partial

from amaranth import C, Cat, Module
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.core import Core
from neuroncore_rtl.hdl.core_ports import core_signature
from neuroncore_rtl.hdl.link.counters import LinkCounters
from neuroncore_rtl.hdl.link.end import CREDITS
from neuroncore_rtl.hdl.link.fabric import add_node
from neuroncore_rtl.hdl.link.flit import frame_layout
from neuroncore_rtl.hdl.link.route import CHIP_BITS
from neuroncore_rtl.hdl.verilog.hierarchy import lead_out, shared
from neuroncore_rtl.spec.instance import Instance
from neuroncore_rtl.spec.link import CHANNELS, CORES_PER_CHIP

__all__ = ["Chip"]


class Chip(wiring.Component):
    """Cores of one chip, connected to its links; they share nothing else.

    A core drives its flits from registers. Its `ready` for incoming flits depends only on registers and on the offered
    flit.

    Arguments:
        instance: the chips, their topology, and their cores' parameters.

    Ports:
        chip: number of this chip; constant. Its first core is core CORES_PER_CHIP * chip of the instance.
        cores: ports of each `hdl.core.Core`, except those to the links.
        tx, rx, rx_present: frames, one port per direction; see `hdl.link.node.LinkNode`.
        dead: one bit per direction, set when that link has failed.
        credits_used: credits in use at this end of each link; see `hdl.link.end.LinkEnd`.
        link_counters: counters of this end of each link.
    """

    def __init__(self, instance: Instance):
        self.instance = instance
        directions, frame = instance.directions, frame_layout(instance.link_bytes)
        super().__init__(
            {
                "chip": In(CHIP_BITS),
                "cores": Out(core_signature(instance.core)).array(CORES_PER_CHIP),
                "tx": Out(frame).array(directions),
                "rx": In(frame).array(directions),
                "rx_present": In(1).array(directions),
                "dead": Out(directions),
                "credits_used": Out(data.ArrayLayout(CREDITS, directions)),
                "link_counters": Out(data.ArrayLayout(LinkCounters, directions)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        instance = self.instance
        node = add_node(m, "node", instance, platform)
        m.d.comb += [node.chip.eq(self.chip), self.dead.eq(node.dead)]
        for direction in range(instance.directions):
            m.d.comb += [
                self.tx[direction].eq(node.tx[direction]),
                node.rx[direction].eq(self.rx[direction]),
                node.rx_present[direction].eq(self.rx_present[direction]),
                self.credits_used[direction].eq(node.credits_used[direction]),
                self.link_counters[direction].eq(node.counters[direction]),
            ]
        build = partial(Core, instance.core, instance.link_bytes)
        for number in range(CORES_PER_CHIP):
            core = shared(m, f"core{number}", "core", build, platform)
            m.d.comb += [
                core.number.eq(Cat(C(number, (CORES_PER_CHIP - 1).bit_length()), self.chip)),
                core.dead.eq(node.dead),
            ]
            for channel in range(CHANNELS):
                wiring.connect(m, core.link_o[channel], node.i[CHANNELS * number + channel])
                wiring.connect(m, node.o[CHANNELS * number + channel], core.link_i[channel])
            lead_out(m, core_signature(instance.core), core, self.cores[number])
        return m
