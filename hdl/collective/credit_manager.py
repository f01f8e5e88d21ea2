"""Credit manager of a receiver: sends READY to a new sender, and GRANT when buffer space is freed."""

from amaranth import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.collective.ops import ELEMENTS_BITS, ReceiveOp, beats_of
from neuroncore_rtl.spec.link import CORE_BITS

__all__ = ["CreditManager"]


class CreditManager(wiring.Component):
    """Forwards receive operations. Before the first operation of a new peer (the core that sends), it requests READY.

    READY gives a sender credits for the whole buffer, GRANT for half of it; see `CollectiveSender`.

    Arguments:
        link_bytes: bytes per beat.
        window: capacity of the receive buffer in beats.

    Ports:
        o: the operations of `i`, in the same cycle.
        popped: a beat is read from the receive buffer.
        ready: request to send READY, which announces that this core can receive, to `peer`; stays until `told`.
        grant: request to send GRANT, which returns credits, to `peer`; stays until `told`.
        told: the requested flit is sent at the end of this cycle: READY if `ready` is set, else GRANT.
    """

    def __init__(self, link_bytes: int, window: int):
        self.link_bytes = link_bytes
        self.window = window
        super().__init__(
            {
                "i": In(stream.Signature(ReceiveOp)),
                "o": Out(stream.Signature(ReceiveOp)),
                "popped": In(1),
                "ready": Out(1),
                "grant": Out(1),
                "peer": Out(CORE_BITS),
                "told": In(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        op = self.i.payload
        announces, announced = Signal(), Signal()
        owed, consumed = Signal(ELEMENTS_BITS + 1), Signal(range(self.window // 2))
        grants = Signal(range(3))  # one per free half of the buffer
        beats = beats_of(m, "beats", op.elements, op.dtype, op.wide_in, self.link_bytes)
        full = self.popped & (consumed == self.window // 2 - 1)
        m.d.comb += [
            announces.eq(self.i.valid & op.new_peer & ~announced & ~self.ready & (owed == 0)),
            self.o.payload.eq(op),
            self.o.valid.eq(self.i.valid & (~op.new_peer | announced)),
            self.i.ready.eq(self.o.ready & (~op.new_peer | announced)),
            self.grant.eq(grants != 0),
        ]
        passes = self.o.valid & self.o.ready
        m.d.sync += [
            owed.eq(owed + Mux(passes & op.net, beats, 0) - self.popped),
            consumed.eq(Mux(full, 0, consumed + self.popped)),
        ]
        with m.If(passes):
            m.d.sync += announced.eq(0)
        m.d.sync += grants.eq(grants + full - (self.told & ~self.ready))
        with m.If(self.told):
            m.d.sync += self.ready.eq(0)
        with m.If(announces):  # drops grants that the previous peer no longer needs
            m.d.sync += [announced.eq(1), self.ready.eq(1), grants.eq(0), self.peer.eq(op.peer), consumed.eq(0)]
        return m
