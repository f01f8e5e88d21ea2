"""Link end: carries flits reliably between a router and a lossy wire.

i -> Sender -> CRC added     -> tx
o <- Receiver <- CRC checked <- rx
     (each frame also carries the receiver's state to the other end)
"""

from amaranth import Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.link.counters import LinkCounters
from neuroncore_rtl.hdl.link.crc import Crc32, crc_of_zeros
from neuroncore_rtl.hdl.link.flit import body_layout, flit_stream, frame_layout
from neuroncore_rtl.hdl.link.receiver import Receiver
from neuroncore_rtl.hdl.link.sender import LinkSender
from neuroncore_rtl.hdl.primitives.counting import count
from neuroncore_rtl.spec.link import SEQUENCE_BITS, VIRTUAL_CHANNELS

__all__ = ["CREDITS", "LinkEnd", "sequence_window"]

CREDITS = data.ArrayLayout(SEQUENCE_BITS, VIRTUAL_CHANNELS)
"""Numbers of credits, one per virtual channel."""


def sequence_window(latency: int) -> int:
    """Return the maximum number of flits in flight, which is also the number of credits per input buffer.

    It is a power of two minus one, and at least the cycles of a round trip, so that one flit can be sent per cycle.

    Arguments:
        latency: latency of the wire in cycles; at most 64 with sequence numbers of 8 bits.

    Raises:
        ValueError: if the sequence numbers do not suffice.
    """
    flits = (1 << (2 * latency + LinkEnd.ROUND_TRIP).bit_length()) - 1
    if latency < 1 or flits >= 1 << SEQUENCE_BITS:
        most = ((1 << SEQUENCE_BITS) - 1 - LinkEnd.ROUND_TRIP) // 2
        raise ValueError(f"latency must be from 1 to {most}, not {latency!r}")
    return flits


class LinkEnd(wiring.Component):
    """Carries one flit per cycle each way: exactly once, in order per virtual channel, under credit control.

    A flit takes `SEND_LATENCY` + wire latency + `RECEIVE_LATENCY` cycles from its acceptance at `i` until it is offered
    at the other end's `o`. After a lost frame, later flits arrive again a round trip later. Both ends exit reset in the
    same cycle.

    Arguments:
        link_bytes: data bytes per flit.
        latency: latency of the wire in cycles; sets the buffer sizes.

    Ports:
        i: flits to send, one stream per virtual channel, accepted round robin: the `ready` of each depends on the
            `valid` of the others.
        o: streams of received flits, one per virtual channel.
        tx: a frame for the wire, in every cycle.
        rx: a frame from the wire, if `rx_present`.
        dead: for `DEAD_CYCLES` cycles no good frame arrived, or no flit in flight was acknowledged; set until reset.
            The end still works if the wire recovers.
        credits_used: flits of each virtual channel for which the other end has not returned a credit, as far as this
            end knows.
    """

    SEND_LATENCY = 2
    """Cycles from a flit at `i` to its frame at `tx`."""

    RECEIVE_LATENCY = 2
    """Cycles from a frame at `rx` to its flit at `o`."""

    ROUND_TRIP = 2 * SEND_LATENCY + 2 * RECEIVE_LATENCY
    """Cycles from a flit at `i` until its credit returns without a stall, besides the wires."""

    DEAD_CYCLES = 2048
    """Cycles without progress until a link is dead: 15 round trips of the longest wire."""

    def __init__(self, link_bytes: int, latency: int):
        self.link_bytes = link_bytes
        self.latency = latency
        self.window = sequence_window(latency)
        super().__init__(
            {
                "i": In(flit_stream(link_bytes)).array(VIRTUAL_CHANNELS),
                "o": Out(flit_stream(link_bytes)).array(VIRTUAL_CHANNELS),
                "tx": Out(frame_layout(link_bytes), init={"crc": crc_of_zeros(body_layout(link_bytes).size)}),
                "rx": In(frame_layout(link_bytes)),
                "rx_present": In(1),
                "dead": Out(1),
                "credits_used": Out(CREDITS),
                "counters": Out(LinkCounters),
            }
        )

    def elaborate(self, platform):
        m = Module()
        body = body_layout(self.link_bytes)
        m.submodules.sender = sender = LinkSender(self.link_bytes, self.window)
        m.submodules.receiver = receiver = Receiver(self.link_bytes, self.window)
        m.submodules.made = made = Crc32(body.size)
        m.submodules.wanted = wanted = Crc32(body.size)
        for vc in range(VIRTUAL_CHANNELS):
            wiring.connect(m, sender.i[vc], wiring.flipped(self.i[vc]))
            wiring.connect(m, receiver.o[vc], wiring.flipped(self.o[vc]))
            m.d.comb += self.credits_used[vc].eq(sender.credits_consumed[vc] - sender.credits_returned[vc])

        said = Signal(body)
        m.d.comb += [
            said.eq(sender.o),
            said.expected.eq(receiver.expected),
            said.retry.eq(receiver.retry),
            said.credits_returned.eq(receiver.credits_returned),
            made.i.eq(said),
        ]
        m.d.sync += [self.tx.body.eq(said), self.tx.crc.eq(made.o)]

        heard, good, bad = Signal(body, reset_less=True), Signal(), Signal()
        right = Signal()
        m.d.comb += [
            wanted.i.eq(self.rx.body),
            right.eq(self.rx.crc == wanted.o),
            sender.heard.eq(heard),
            sender.good.eq(good),
            receiver.heard.eq(heard),
            receiver.good.eq(good),
        ]
        m.d.sync += [heard.eq(self.rx.body), good.eq(self.rx_present & right), bad.eq(self.rx_present & ~right)]

        quiet = Signal(range(2 * self.DEAD_CYCLES))
        m.d.comb += self.dead.eq(quiet[-1])
        with m.If(good & (sender.progress | ~sender.owed) & ~self.dead):
            m.d.sync += quiet.eq(0)
        with m.Elif(~self.dead):
            m.d.sync += quiet.eq(quiet + 1)

        count(
            m,
            self.counters,
            flits=sender.accepted,
            replays=sender.replayed,
            crc_errors=bad,
            discarded=receiver.discarded,
            idle=~sender.o.valid,
            stalled=sender.stalled,
        )
        return m
