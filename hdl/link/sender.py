"""Sending half of a link end: numbers flits, stores them until they are acknowledged, and replays them."""

from amaranth import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.link.flit import body_layout, flit_layout, flit_stream
from neuroncore_rtl.spec.link import SEQUENCE_BITS, VIRTUAL_CHANNELS

__all__ = ["LinkSender"]


class LinkSender(wiring.Component):
    """Accepts a flit in every cycle; its frame is at `o` in the next cycle.

    A flit needs a credit of its virtual channel and an entry of the replay memory. All flits pass through that memory,
    so a replay only changes the read address.

    Arguments:
        link_bytes: data bytes per flit.
        window: see `hdl.link.end.sequence_window`.

    Ports:
        i: streams of flits to send, one per virtual channel, accepted round robin.
        heard: body of the received frame, valid if `good`.
        o: a frame in every cycle, without `expected`, `retry` and `credits_returned`.
        replayed: a replay starts in this cycle.
        stalled: a flit is pending and none is `accepted`.
        owed: the other end has not acknowledged all sent flits.
        progress: the other end acknowledges more flits in this cycle.

    Attributes:
        known: sequence number of the first flit that is not acknowledged.
        end: sequence number after the last stored flit.
        memory: the stored flits; each is at its sequence number modulo the depth.
        credits_consumed: number of credits consumed per virtual channel, modulo 2 ** SEQUENCE_BITS.
        credits_returned: number of credits returned per virtual channel, from the latest frame.
    """

    def __init__(self, link_bytes: int, window: int):
        self.link_bytes = link_bytes
        self.window = window
        self.known, self.end = Signal(SEQUENCE_BITS), Signal(SEQUENCE_BITS)
        self.credits_consumed, self.credits_returned = (
            [Signal(SEQUENCE_BITS, name=f"credits_{what}{vc}") for vc in range(VIRTUAL_CHANNELS)]
            for what in ("consumed", "returned")
        )
        kept = data.StructLayout({"flit": flit_layout(link_bytes), "vc": 1})
        self.memory = Memory(shape=kept, depth=window + 1, init=[])
        super().__init__(
            {
                "i": In(flit_stream(link_bytes)).array(VIRTUAL_CHANNELS),
                "heard": In(body_layout(link_bytes)),
                "good": In(1),
                "o": Out(body_layout(link_bytes)),
                "accepted": Out(1),
                "replayed": Out(1),
                "stalled": Out(1),
                "owed": Out(1),
                "progress": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory = memory = self.memory
        writer = memory.write_port()
        reader = memory.read_port(transparent_for=(writer,))
        index_bits = self.window.bit_length()
        known, end = self.known, self.end
        consumed, returned = self.credits_consumed, self.credits_returned

        # Read address: `o.sequence` is the flit sent now, `following` the one sent next.
        following = Signal(SEQUENCE_BITS)
        m.d.comb += [
            self.o.flit.eq(reader.data.flit),
            self.o.vc.eq(reader.data.vc),
            self.o.valid.eq(self.o.sequence != end),
            self.replayed.eq(self.good & (self.heard.retry != self.o.answer)),
            following.eq(Mux(self.replayed, self.heard.expected, self.o.sequence + self.o.valid)),
            reader.addr.eq(following[:index_bits]),
            self.owed.eq(known != end),
            self.progress.eq(self.good & (self.heard.expected != known)),
        ]
        m.d.sync += self.o.sequence.eq(following)
        with m.If(self.good):
            m.d.sync += [known.eq(self.heard.expected), self.o.answer.eq(self.heard.retry)]
            m.d.sync += [count.eq(self.heard.credits_returned[vc]) for vc, count in enumerate(returned)]

        room, last, choice = Signal(), Signal(), Signal()
        can = Signal(VIRTUAL_CHANNELS)
        offered = [flits.valid for flits in self.i]
        m.d.comb += [
            room.eq((end - known)[:index_bits] != self.window),
            *(
                can[vc].eq(room & ((consumed[vc] - returned[vc])[:index_bits] != self.window))
                for vc in range(VIRTUAL_CHANNELS)
            ),
            choice.eq(Mux(last, ~(offered[0] & can[0]), offered[1] & can[1])),
            self.i[0].ready.eq(can[0] & ~choice),
            self.i[1].ready.eq(can[1] & choice),
            self.accepted.eq(Mux(choice, offered[1] & can[1], offered[0] & can[0])),
            self.stalled.eq((offered[0] | offered[1]) & ~self.accepted),
            writer.en.eq(self.accepted),
            writer.addr.eq(end[:index_bits]),
            writer.data.flit.eq(Mux(choice, self.i[1].payload, self.i[0].payload)),
            writer.data.vc.eq(choice),
        ]
        m.d.sync += end.eq(end + self.accepted)
        with m.If(self.accepted):
            m.d.sync += last.eq(choice)
        for vc, count in enumerate(consumed):
            with m.If(self.accepted & (choice == vc)):
                m.d.sync += count.eq(count + 1)
        return m
