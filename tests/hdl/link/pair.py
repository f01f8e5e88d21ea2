"""Two link ends with a wire in each direction."""

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.link.counters import LinkCounters
from neuroncore_rtl.hdl.link.end import CREDITS, LinkEnd
from neuroncore_rtl.hdl.link.flit import flit_stream, frame_layout
from neuroncore_rtl.hdl.link.wire import DISTURBANCE, Wire
from neuroncore_rtl.spec.link import VIRTUAL_CHANNELS
from tests.hdl.simulation import assign

__all__ = ["ENDS", "PATHS", "Pair"]

ENDS = (0, 1)
PATHS = [(end, vc) for end in ENDS for vc in range(VIRTUAL_CHANNELS)]
"""Inputs of flits: an end and a virtual channel. The flits are delivered at the other end."""


class Pair(wiring.Component):
    """Both ends and their wires: wire n leads from end n to the other. Ports are arrays indexed by end, or by wire."""

    def __init__(self, link_bytes: int = 8, latency: int = 2):
        self.ends = [LinkEnd(link_bytes, latency) for _ in ENDS]
        self.wires = [Wire(link_bytes, latency) for _ in ENDS]
        flits = flit_stream(link_bytes)
        super().__init__(
            {
                "i": In(flits).array(len(ENDS), VIRTUAL_CHANNELS),
                "o": Out(flits).array(len(ENDS), VIRTUAL_CHANNELS),
                "tx": Out(frame_layout(link_bytes)).array(len(ENDS)),
                "disturbance": In(DISTURBANCE).array(len(ENDS)),
                "dead": Out(1).array(len(ENDS)),
                "credits_used": Out(CREDITS).array(len(ENDS)),
                "counters": Out(LinkCounters).array(len(ENDS)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        for n, (end, wire, far) in enumerate(zip(self.ends, self.wires, reversed(self.ends), strict=True)):
            m.submodules[f"end{n}"], m.submodules[f"wire{n}"] = end, wire
            assign(m, wire, i=end.tx, disturbance=self.disturbance[n])
            assign(m, far, rx=wire.o, rx_present=wire.present)
            m.d.comb += [
                getattr(self, name)[n].eq(getattr(end, name)) for name in ("tx", "dead", "credits_used", "counters")
            ]
            for vc in range(VIRTUAL_CHANNELS):
                wiring.connect(m, wiring.flipped(self.i[n][vc]), end.i[vc])
                wiring.connect(m, end.o[vc], wiring.flipped(self.o[n][vc]))
        return m
