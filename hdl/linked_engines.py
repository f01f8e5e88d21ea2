"""Collective engines of an instance on its links, without the cores around them, for tests of collectives.

    instructions -> CollectiveEngine -- flits -- Fabric -- flits -- CollectiveEngine <- instructions
                       |   | AXI                                       |   | AXI

These units contain all interaction between cores, but simulate much faster than whole cores, which are tens of times as
large.
"""

from functools import partial

from amaranth import Cat, Module
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.collective.counters import CollectiveCounters
from neuroncore_rtl.hdl.collective.engine import CollectiveEngine
from neuroncore_rtl.hdl.collective.instruction import CollectiveInstruction
from neuroncore_rtl.hdl.link.counters import LinkCounters
from neuroncore_rtl.hdl.link.end import CREDITS
from neuroncore_rtl.hdl.link.fabric import Fabric, connect_disturbance, disturbance_ports
from neuroncore_rtl.hdl.memory.axi import AxiPort
from neuroncore_rtl.hdl.primitives.engine_error import DetailedError
from neuroncore_rtl.hdl.verilog.hierarchy import shared
from neuroncore_rtl.spec.instance import Instance
from neuroncore_rtl.spec.link import CHANNELS

__all__ = ["LinkedEngines"]


class LinkedEngines(wiring.Component):
    """One collective engine per core of an instance, and the fabric between them.

    Arguments:
        instance: the linked chips; of their cores' parameters only `hbm_bytes` and `ring_rate` are used.

    Ports:
        instructions: one stream per core.
        axi: ports to the cores' HBM: core 0's ports of all channels, then core 1's, and so on.
        flip, flip_bit, drop, repeated, cut, dead, credits_used, link_counters: see `hdl.instance.LinkedCores`.
        retired: one bit per core, a pulse for each retired instruction.
        failed: one bit per core, set when its engine has an error.
        errors, counters: error and event counters of each engine.
    """

    def __init__(self, instance: Instance):
        self.instance = instance
        cores, wires = instance.cores, instance.chips * instance.directions
        super().__init__(
            {
                "instructions": In(stream.Signature(CollectiveInstruction)).array(cores),
                "axi": Out(AxiPort(instance.core.hbm_bytes, 1)).array(CHANNELS * cores),
                **disturbance_ports(wires),
                "retired": Out(cores),
                "failed": Out(cores),
                "errors": Out(data.ArrayLayout(DetailedError, cores)),
                "counters": Out(data.ArrayLayout(CollectiveCounters, cores)),
                "dead": Out(wires),
                "credits_used": Out(data.ArrayLayout(CREDITS, wires)),
                "link_counters": Out(data.ArrayLayout(LinkCounters, wires)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        instance = self.instance
        m.submodules.fabric = fabric = Fabric(instance)
        one = instance.core
        build = partial(CollectiveEngine, instance.link_bytes, one.hbm_bytes, instance.cores, one.ring_rate)
        engines = [shared(m, f"engine{core}", "collective_engine", build, platform) for core in range(instance.cores)]
        for core, engine in enumerate(engines):
            m.d.comb += [
                engine.core.eq(core),
                self.errors[core].eq(engine.error),
                self.counters[core].eq(engine.counters),
            ]
            wiring.connect(m, wiring.flipped(self.instructions[core]), engine.instructions)
            for channel in range(CHANNELS):
                port = CHANNELS * core + channel
                wiring.connect(m, engine.axi[channel], wiring.flipped(self.axi[port]))
                wiring.connect(m, engine.o[channel], fabric.i[port])
                wiring.connect(m, fabric.o[port], engine.i[channel])
        connect_disturbance(m, self, fabric.disturbance)
        for wire, counters in enumerate(fabric.counters):
            m.d.comb += self.link_counters[wire].eq(counters)
        m.d.comb += [
            self.dead.eq(fabric.dead),
            self.credits_used.eq(fabric.credits_used),
            self.retired.eq(Cat(engine.retired for engine in engines)),
            self.failed.eq(Cat(engine.error.valid for engine in engines)),
        ]
        return m
