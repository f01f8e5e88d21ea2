"""Read arbiter: connects the read channels of two managers to one port, which answers in order."""

from amaranth import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.memory.axi import AxiPort
from neuroncore_rtl.hdl.primitives.fifo import Fifo

__all__ = ["ReadArbiter"]


class ReadArbiter(wiring.Component):
    """Grants addresses without latency; all IDs are 0, so responses return in the order of the addresses.

    The first manager has priority; it must leave gaps. In a collective channel it is the Sender's loader, as a rank
    sends before it reduces; what the Sender has not yet sent fills that loader's buffer.

    Arguments:
        size: bytes per beat.
        bursts: maximum number of bursts with outstanding beats; a further address stalls.

    Ports:
        managers: ports of the managers, which accept every beat; the write channels are not used.
        port: port to HBM; its write channels are not used.
    """

    def __init__(self, size: int, bursts: int = 8):
        self.bursts = bursts
        super().__init__({"managers": In(AxiPort(size, 1)).array(2), "port": Out(AxiPort(size, 1))})

    def elaborate(self, platform):
        m = Module()
        m.submodules.order = order = Fifo(1, depth=self.bursts)  # managers of the bursts with outstanding beats
        first, second = (manager.ar for manager in self.managers)
        ar, r = self.port.ar, self.port.r
        latest, held, chosen, granted = Signal(), Signal(), Signal(), Signal()
        m.d.comb += [
            # An address that is offered stays.
            chosen.eq(Mux(held, latest, ~first.valid)),
            ar.valid.eq((first.valid | second.valid) & order.i.ready),
            ar.payload.eq(Mux(chosen, second.payload, first.payload)),
            granted.eq(ar.valid & ar.ready),
            first.ready.eq(granted & ~chosen),
            second.ready.eq(granted & chosen),
            order.i.valid.eq(granted),
            order.i.payload.eq(chosen),
            r.ready.eq(1),
            order.o.ready.eq(r.valid & r.payload.last),
        ]
        m.d.sync += held.eq(ar.valid & ~ar.ready)
        with m.If(ar.valid):
            m.d.sync += latest.eq(chosen)
        for number, manager in enumerate(self.managers):
            m.d.comb += [
                manager.r.payload.eq(r.payload),
                manager.r.valid.eq(r.valid & (order.o.payload == number)),
            ]
        return m
