"""Collective sender: sends loaded and forwarded beats to the next core, under credit control."""

from amaranth import Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.collective.mailbox import Mailbox
from neuroncore_rtl.hdl.collective.ops import ELEMENTS_BITS, SendOp, beats_of
from neuroncore_rtl.hdl.collective.signature import Disagreement, difference
from neuroncore_rtl.spec.isa.collective import SIGNATURE_BITS
from neuroncore_rtl.spec.link import CORE_BITS

__all__ = ["CollectiveSender"]


class CollectiveSender(wiring.Component):
    """Sends one beat per cycle, also across operations, while it has credits.

    Data for a new peer (the core that receives) waits for the peer's announcement, its READY flit. If the signature in
    it does not match `own`, the sender refuses the announcement and sends no further data until reset.

    Arguments:
        link_bytes: bytes per beat.
        cores: number of cores of the instance.
        window: number of beats that a READY flit (announcement) permits to send; a GRANT flit permits half as many.
        rate: maximum bytes per cycle; 0: no limit.

    Ports:
        ops: segments to send, in order.
        own: signature of the instruction; stable while operations are pending.
        peer: core that receives the beats.
        put: an announcement of the core `source` arrives.
        granted: a GRANT of the core `source` arrives; ignored unless `source` is `peer`.
        announced: signature of the announcement.
        stop: while set, no more beats are sent.
        refuses: the announcement of `peer` is refused; stays until reset.
        disagreement: first difference between `own` and an announced signature (`Disagreement`); stays until reset.
        wait_ready: a beat stalls because the announcement of `peer` is missing.
        wait_credit: a beat stalls because no credit is available.
        wait_load: a beat stalls because its data from the Loader is missing.
    """

    def __init__(self, link_bytes: int, cores: int, window: int, rate: int = 0):
        self.link_bytes = link_bytes
        self.rate = rate
        self.cores = cores
        self.window = window
        beat = stream.Signature(8 * link_bytes)
        super().__init__(
            {
                "ops": In(stream.Signature(SendOp)),
                "load": In(beat),
                "forward": In(beat),
                "own": In(SIGNATURE_BITS),
                "o": Out(beat),
                "peer": Out(CORE_BITS),
                "put": In(1),
                "granted": In(1),
                "source": In(CORE_BITS),
                "announced": In(SIGNATURE_BITS),
                "stop": In(1),
                "refuses": Out(1),
                "disagreement": Out(Disagreement),
                "wait_ready": Out(1),
                "wait_credit": Out(1),
                "wait_load": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.mailbox = mailbox = Mailbox(self.cores)
        coming = self.ops.payload
        active, from_load, left = Signal(), Signal(reset_less=True), Signal(ELEMENTS_BITS, reset_less=True)
        beats = beats_of(m, "beats", coming.elements, coming.dtype, coming.wide, self.link_bytes)
        credits = Signal(range(self.window + 1))
        takes, ends, moves, free, available = (Signal(name=n) for n in ("takes", "ends", "moves", "free", "available"))

        # Start of an operation. `looked`: the mailbox has had a cycle to look up the peer's announcement.
        looked, meets = Signal(), Signal()
        field = difference(m, "field", self.own, mailbox.found)
        m.d.comb += [
            free.eq(~active | ends),
            meets.eq(self.ops.valid & coming.new_peer & ~active & looked & mailbox.there & ~self.refuses),
            takes.eq(self.ops.valid & Mux(coming.new_peer, meets & (field == 0), free) & ~self.refuses),
            self.ops.ready.eq(takes),
            mailbox.put.eq(self.put),
            mailbox.source.eq(self.source),
            mailbox.announced.eq(self.announced),
            mailbox.core.eq(coming.peer),
            mailbox.take.eq(meets),
            self.disagreement.valid.eq(self.refuses),
            self.wait_ready.eq(self.ops.valid & coming.new_peer & ~active & ~takes),
        ]
        m.d.sync += looked.eq(self.ops.valid & coming.new_peer & ~active & ~takes)
        with m.If(meets):
            m.d.sync += self.peer.eq(coming.peer)
            with m.If(field != 0):
                m.d.sync += [
                    self.refuses.eq(1),
                    self.disagreement.core.eq(coming.peer),
                    self.disagreement.field.eq(field),
                ]
        with m.If(takes):
            m.d.sync += [active.eq(1), from_load.eq(coming.load), left.eq(beats)]
        with m.Elif(ends):
            m.d.sync += active.eq(0)

        # Transfer of a beat.
        present = Mux(from_load, self.load.valid, self.forward.valid)
        if self.rate:
            present &= self._due(m, moves)
        m.d.comb += [
            available.eq(present),
            self.o.valid.eq(active & available & (credits != 0) & ~self.stop),
            self.o.payload.eq(Mux(from_load, self.load.payload, self.forward.payload)),
            moves.eq(self.o.valid & self.o.ready),
            ends.eq(moves & (left == 1)),
            self.load.ready.eq(moves & from_load),
            self.forward.ready.eq(moves & ~from_load),
            self.wait_credit.eq(active & available & (credits == 0)),
            self.wait_load.eq(active & from_load & ~self.load.valid),
        ]
        with m.If(moves & ~ends):
            m.d.sync += left.eq(left - 1)
        with m.If(takes & coming.new_peer):
            m.d.sync += credits.eq(self.window)
        with m.Else():
            more = self.granted & (self.source == self.peer)
            m.d.sync += credits.eq(credits + Mux(more, self.window // 2, 0) - moves)
        return m

    def _due(self, m: Module, moves: Signal) -> Value:
        """Return whether the beats so far have taken their time at `rate` bytes per cycle.

        A beat adds its bytes to a debt, and each cycle pays `rate` of it.
        """
        debt = Signal(range(self.link_bytes + self.rate))
        owed = debt + Mux(moves, self.link_bytes, 0)
        m.d.sync += debt.eq(Mux(owed > self.rate, owed - self.rate, 0))
        return debt < self.rate
