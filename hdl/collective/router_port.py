"""Router port of a channel: separates received flits by kind, and arbitrates between flits to send."""

from amaranth import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.collective.signature import Disagreement, difference
from neuroncore_rtl.hdl.link.flit import flit_layout, flit_stream
from neuroncore_rtl.spec.isa.collective import SIGNATURE_BITS
from neuroncore_rtl.spec.link import CORE_BITS, FlitKind

__all__ = ["RouterPort"]


class RouterPort(wiring.Component):
    """One flit per cycle each way: received flits pass in the same cycle, sent flits are at `o` in the next.

    Control flits are always accepted. Priority to send: REFUSE, then READY and GRANT, then data.

    Ports:
        own: signature of this core's instruction in flight.
        put: a READY flit is received in this cycle.
        granted: a GRANT flit is received in this cycle.
        source: core that sent this READY or GRANT.
        announced: signature in the received READY.
        refused: `Disagreement` with the first core that refused; stays until reset.
        refuses: request to answer the READY of `receiver` with a refusal; stays set, and the refusal is sent once.
        receiver: core that receives the data of this core.
        ready: request to send READY to `sender`.
        grant: request to send GRANT to `sender`.
        told: the requested flit is sent at the end of this cycle: READY if `ready` is set, else GRANT.
    """

    def __init__(self, link_bytes: int, channel: int):
        self.link_bytes = link_bytes
        self.channel = channel
        beat = stream.Signature(8 * link_bytes)
        super().__init__(
            {
                "core": In(CORE_BITS),
                "own": In(SIGNATURE_BITS),
                "i": In(flit_stream(link_bytes)),
                "o": Out(flit_stream(link_bytes)),
                "received": Out(beat),
                "put": Out(1),
                "granted": Out(1),
                "source": Out(CORE_BITS),
                "announced": Out(SIGNATURE_BITS),
                "refused": Out(Disagreement),
                "refuses": In(1),
                "beats": In(beat),
                "receiver": In(CORE_BITS),
                "ready": In(1),
                "grant": In(1),
                "sender": In(CORE_BITS),
                "told": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        self._receive(m)
        self._send(m)
        return m

    def _receive(self, m: Module) -> None:
        header = self.i.payload.header
        is_kind = {kind: self.i.valid & (header.kind == kind) for kind in FlitKind}
        m.d.comb += [
            self.received.payload.eq(self.i.payload.data),
            self.received.valid.eq(is_kind[FlitKind.DATA]),
            self.i.ready.eq((header.kind != FlitKind.DATA) | self.received.ready),
            self.put.eq(is_kind[FlitKind.READY]),
            self.granted.eq(is_kind[FlitKind.GRANT]),
            self.source.eq(header.source),
            self.announced.eq(self.i.payload.data[:SIGNATURE_BITS]),
        ]
        field = difference(m, "field", self.own, self.announced)
        with m.If(is_kind[FlitKind.REFUSE] & ~self.refused.valid):
            m.d.sync += [self.refused.valid.eq(1), self.refused.core.eq(header.source), self.refused.field.eq(field)]

    def _send(self, m: Module) -> None:
        flit, some, free, has_refused = Signal(flit_layout(self.link_bytes)), Signal(), Signal(), Signal()
        m.d.comb += [
            free.eq(~self.o.valid | self.o.ready),
            flit.header.source.eq(self.core),
            flit.header.channel.eq(self.channel),
            flit.data.eq(self.own),
            some.eq(1),
        ]
        with m.If(self.refuses & ~has_refused):
            m.d.comb += [flit.header.kind.eq(FlitKind.REFUSE), flit.header.destination.eq(self.receiver)]
            m.d.sync += has_refused.eq(free)
        with m.Elif(self.ready | self.grant):
            m.d.comb += [
                flit.header.kind.eq(Mux(self.ready, FlitKind.READY, FlitKind.GRANT)),
                flit.header.destination.eq(self.sender),
                self.told.eq(free),
            ]
        with m.Else():
            m.d.comb += [
                flit.header.kind.eq(FlitKind.DATA),
                flit.header.destination.eq(self.receiver),
                flit.data.eq(self.beats.payload),
                self.beats.ready.eq(free),
                some.eq(self.beats.valid),
            ]
        with m.If(free):
            m.d.sync += [self.o.valid.eq(some), self.o.payload.eq(flit)]
