"""Instance: chips and the links between them.

cores -- Chip == Wire ==> Chip -- cores
              <== Wire ==
"""

from functools import partial

from amaranth import Cat, Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import Out

from neuroncore_rtl.hdl.chip import Chip
from neuroncore_rtl.hdl.core_ports import core_signature
from neuroncore_rtl.hdl.link.counters import LinkCounters
from neuroncore_rtl.hdl.link.end import CREDITS
from neuroncore_rtl.hdl.link.fabric import add_wires, connect_disturbance, disturbance_ports
from neuroncore_rtl.hdl.link.wire import DISTURBANCE
from neuroncore_rtl.hdl.verilog.hierarchy import lead_out, shared
from neuroncore_rtl.spec.instance import Instance
from neuroncore_rtl.spec.link import CORES_PER_CHIP

__all__ = ["LinkedCores"]


class LinkedCores(wiring.Component):
    """All cores of an instance and their links; each core has its own HBM and its own boot.

    All cores are released from reset in the same cycle; the links require it.

    Arguments:
        instance: the linked chips, and their cores' parameters.

    Ports:
        cores: ports of each `hdl.core.Core`, except those to the links.
        flip, flip_bit, drop, repeated, cut: faults injected into each wire, the link's connection from one chip to the
            next: invert bit `flip_bit` of the frame, lose the frame, deliver the previous frame instead, deliver
            nothing. Wire w leads from chip w // directions in direction w % directions.
        dead: one bit per wire, set when its link has failed; held until reset.
        credits_used: credits in use at the sending end of each wire; see `hdl.link.end.LinkEnd`.
        link_counters: event counters of that end.
    """

    def __init__(self, instance: Instance):
        self.instance = instance
        self.wires = wires = instance.chips * instance.directions
        super().__init__(
            {
                "cores": Out(core_signature(instance.core)).array(instance.cores),
                **disturbance_ports(wires),
                "dead": Out(wires),
                "credits_used": Out(data.ArrayLayout(CREDITS, wires)),
                "link_counters": Out(data.ArrayLayout(LinkCounters, wires)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        instance = self.instance
        build = partial(Chip, instance)
        chips = [shared(m, f"chip_{chip}", "linked_chip", build, platform) for chip in range(instance.chips)]
        disturbance = [Signal(DISTURBANCE, name=f"disturbance_{wire}") for wire in range(self.wires)]
        connect_disturbance(m, self, disturbance)
        add_wires(m, instance, chips, disturbance, platform)
        ports = core_signature(instance.core)
        for number, chip in enumerate(chips):
            m.d.comb += chip.chip.eq(number)
            for core in range(CORES_PER_CHIP):
                lead_out(m, ports, chip.cores[core], self.cores[CORES_PER_CHIP * number + core])
            for direction in range(instance.directions):
                wire = instance.directions * number + direction
                m.d.comb += [
                    self.credits_used[wire].eq(chip.credits_used[direction]),
                    self.link_counters[wire].eq(chip.link_counters[direction]),
                ]
        m.d.comb += self.dead.eq(Cat(chip.dead for chip in chips))
        return m
