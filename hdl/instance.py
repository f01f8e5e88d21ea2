"""An instance: chips on their links.

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
from neuroncore_rtl.hdl.link.fabric import add_wires, connect_disturbance, disturbance_ports
from neuroncore_rtl.hdl.link.wire import DISTURBANCE
from neuroncore_rtl.hdl.verilog.hierarchy import lead_out, shared
from neuroncore_rtl.spec.instance import Instance
from neuroncore_rtl.spec.link import CORES_PER_CHIP

__all__ = ["LinkedCores"]


class LinkedCores(wiring.Component):
    """All cores of an instance, and everything between them; each core has its own HBM, and is booted by itself.

    All come out of reset in the same cycle, which their links need.

    Arguments:
        instance: the instance.

    Ports:
        cores: the ports of each :class:`~hdl.core.Core` that do not go to the links.
        flip, flip_bit, drop, repeated, cut: what disturbs each wire, which is that of direction w % directions of chip
            w // directions: a bit of the frame is turned, the frame is lost, the one before it comes instead, nothing
            comes at all.
        dead: the link of that wire is; stays until reset. link_counters: of the end that sends on it.
    """

    def __init__(self, instance: Instance):
        self.instance = instance
        self.wires = wires = instance.chips * instance.directions
        super().__init__(
            {
                "cores": Out(core_signature(instance.core)).array(instance.cores),
                **disturbance_ports(wires),
                "dead": Out(wires),
                "link_counters": Out(data.ArrayLayout(LinkCounters, wires)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        instance = self.instance
        build = partial(Chip, instance)
        chips = [shared(m, f"chip_{chip}", "chip", build, platform) for chip in range(instance.chips)]
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
                m.d.comb += self.link_counters[wire].eq(chip.link_counters[direction])
        m.d.comb += self.dead.eq(Cat(chip.dead for chip in chips))
        return m
