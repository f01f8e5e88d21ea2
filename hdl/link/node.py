"""Link node: a chip's router and the ends of its links."""

from functools import partial

from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.link.counters import LinkCounters
from neuroncore_rtl.hdl.link.end import CREDITS, LinkEnd
from neuroncore_rtl.hdl.link.flit import flit_stream, frame_layout
from neuroncore_rtl.hdl.link.route import CHIP_BITS, LOCAL_PORTS
from neuroncore_rtl.hdl.link.router import Router
from neuroncore_rtl.hdl.verilog.hierarchy import shared
from neuroncore_rtl.spec.instance import Instance
from neuroncore_rtl.spec.link import VIRTUAL_CHANNELS

__all__ = ["LinkNode"]


class LinkNode(wiring.Component):
    """Router of a chip and the ends of its links. Every output is a register or depends on registers only.

    Ports:
        chip: number of this chip; constant.
        i: streams of flits from the cores: `local_in` of `Router`.
        o: streams of flits to the cores: `local_out` of `Router`.
        The further ports are those of a `LinkEnd`, one per direction.
    """

    def __init__(self, instance: Instance):
        self.instance = instance
        flits, frame = flit_stream(instance.link_bytes), frame_layout(instance.link_bytes)
        super().__init__(
            {
                "chip": In(CHIP_BITS),
                "i": In(flits).array(LOCAL_PORTS),
                "o": Out(flits).array(LOCAL_PORTS),
                "tx": Out(frame).array(instance.directions),
                "rx": In(frame).array(instance.directions),
                "rx_present": In(1).array(instance.directions),
                "dead": Out(instance.directions),
                "credits_used": Out(CREDITS).array(instance.directions),
                "counters": Out(LinkCounters).array(instance.directions),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.router = router = Router(self.instance)
        m.d.comb += router.chip.eq(self.chip)
        for port in range(LOCAL_PORTS):
            wiring.connect(m, wiring.flipped(self.i[port]), router.local_in[port])
            wiring.connect(m, router.local_out[port], wiring.flipped(self.o[port]))
        size = self.instance.link_bytes, self.instance.link_latency
        for direction in range(self.instance.directions):
            module = "link_end_{}_{}".format(*size)
            end = shared(m, f"end_{direction}", module, partial(LinkEnd, *size), platform)
            for vc in range(VIRTUAL_CHANNELS):
                wiring.connect(m, router.links_out[direction][vc], end.i[vc])
                wiring.connect(m, end.o[vc], router.links_in[direction][vc])
            m.d.comb += [
                self.tx[direction].eq(end.tx),
                end.rx.eq(self.rx[direction]),
                end.rx_present.eq(self.rx_present[direction]),
                self.dead[direction].eq(end.dead),
                self.credits_used[direction].eq(end.credits_used),
                self.counters[direction].eq(end.counters),
            ]
        return m
