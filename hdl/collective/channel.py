"""A channel: half of a collective engine, with its own port of HBM and of the router.

    job -> Schedule -+-> loads ----> Loader -+-> to send ----------------------+
                     |                       +-> to reduce -------+            |
                     +-> receives -> CreditManager ---> ReceivePath -> forward +-> Sender -> flits
                     |                      |       ^       |                  |
                     +-> sends -------------|-------|-------|------------------+
                                            |       |       +-> Storer
           flits -> buffer (DATA) ----------|-------+
                 -> Sender (READY, GRANT)   +-> flits (READY, GRANT)

Why a group never waits in a circle. What a channel does for an instruction is one list, in the order of the Schedule:
for each step its load, its receive operation, and the send operation of what comes of that. The three queues are parts
of this list, and all operations of a step enter them together, so that the first operation that is not done can wait
for one of these only:

- For the router to take a flit. It does in the end, because every channel takes what comes to it at once: control flits
  go to the Mailbox or to a count, and no data is sent for which the buffer has no room.
- For HBM, which answers in the end. The Loader serves the Sender and the ReceivePath in the order of the list, so that
  a beat that is not taken yet is in nobody's way but of what comes later in the list.
- For READY, which a receiver sends when it has done everything for the sender before. In a ring these are the first
  operations, or those of one instruction after those of another. In ALL_TO_ALL those who are at the lowest step of all
  wait for others at the same step only, in which sending does not wait for receiving.
- For the net, that is, for the operation of the same number in the list of the core before; or for room in the buffer
  of the core behind.

So consider a ring in which all wait, with the receive operation j of a rank forwarded by its send operation j + 1
(operations without elements counted). A sender at operation i is out of credit: since a receiver has two largest
segments of room, and keeps back grants of less than one, more than a largest segment is on its way; so the receiver
there is at j < i, and has beats. It waits for its own sender, which is at i' <= j + 1 <= i, and waits in its turn.
Round the ring all are equal: all senders are at i, all receivers at i - 1, and every receiver has taken at least as
many beats of i - 1 as its sender has sent of i; but every sender has sent more of i than the receiver behind it has
taken of i - 1. That cannot be. A sender that waits for its own receiver, which waits for the net, leads back along the
ring to a rank whose sender has something to load, or is out of credit. A broadcast is a chain, and a transfer a link
of one; the token that goes before the data, and closes either to a ring, waits for READY only, with which the rank that
it is for begins.
"""

from amaranth import Module, Mux
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.collective.counters import CHANNEL_EVENTS
from neuroncore_rtl.hdl.collective.credit_manager import CreditManager
from neuroncore_rtl.hdl.collective.job import SEGMENT_ELEMENTS, CollectiveJobLayout
from neuroncore_rtl.hdl.collective.loader import CollectiveLoader
from neuroncore_rtl.hdl.collective.peer import Peer
from neuroncore_rtl.hdl.collective.receiver import ReceivePath
from neuroncore_rtl.hdl.collective.router_port import RouterPort
from neuroncore_rtl.hdl.collective.schedule import Schedule
from neuroncore_rtl.hdl.collective.sender import CollectiveSender
from neuroncore_rtl.hdl.collective.signature import Disagreement
from neuroncore_rtl.hdl.collective.storer import Storer
from neuroncore_rtl.hdl.link.flit import flit_stream
from neuroncore_rtl.hdl.memory.axi import AxiPort, connect_channels
from neuroncore_rtl.hdl.primitives.fifo import BufferedFifo
from neuroncore_rtl.spec.link import CORE_BITS, FlitKind

__all__ = ["Channel", "buffer_beats"]


def buffer_beats(link_bytes: int) -> int:
    """Return the flits that a receiver has room for: two largest segments of four-byte elements."""
    return 2 * SEGMENT_ELEMENTS * 4 // link_bytes


class Channel(wiring.Component):
    """Executes a job's part of one direction; a flit a cycle each way, as long as everybody keeps up.

    Arguments:
        link_bytes: of a flit's data. hbm_bytes: of a beat of HBM. cores: of the instance.
        channel: 0 sends to the next rank, 1 to the previous one.

    Ports:
        job: legal jobs; the next one is given when this one is done. core: number of this core; constant.
        i, o: flits from and to the router. axi: HBM.
        idle: nothing of a job is left here, all that was stored is answered.
        stop: no more data is sent.
        axi_error: HBM answered with an error. disagreement: with a core that was to receive from here, or to send to
            here. Both stay until reset.
        peer: whom the Sender waits for, because of READY or GRANT; or else the ReceivePath, because of data.
        events: what :class:`ChannelCounters` count.
    """

    def __init__(self, link_bytes: int, hbm_bytes: int, cores: int, channel: int):
        self.link_bytes = link_bytes
        self.hbm_bytes = hbm_bytes
        self.cores = cores
        self.channel = channel
        super().__init__(
            {
                "job": In(stream.Signature(CollectiveJobLayout)),
                "core": In(CORE_BITS),
                "i": In(flit_stream(link_bytes)),
                "o": Out(flit_stream(link_bytes)),
                "axi": Out(AxiPort(hbm_bytes, 1)),
                "idle": Out(1),
                "stop": In(1),
                "axi_error": Out(1),
                "disagreement": Out(Disagreement),
                "peer": Out(Peer),
                "events": Out(CHANNEL_EVENTS),
            }
        )

    def elaborate(self, platform):
        m = Module()
        window = buffer_beats(self.link_bytes)
        m.submodules.schedule = schedule = Schedule(self.channel)
        m.submodules.loader = loader = CollectiveLoader(self.link_bytes, self.hbm_bytes)
        m.submodules.storer = storer = Storer(self.link_bytes, self.hbm_bytes)
        m.submodules.buffer = buffer = BufferedFifo(8 * self.link_bytes, window)
        m.submodules.credits = credits = CreditManager(self.link_bytes, window)
        m.submodules.path = path = ReceivePath(self.link_bytes)
        m.submodules.sender = sender = CollectiveSender(self.link_bytes, self.cores, window)
        m.submodules.port = port = RouterPort(self.link_bytes, self.channel)
        wiring.connect(m, wiring.flipped(self.job), schedule.i)
        wiring.connect(m, schedule.loads, loader.ops)
        wiring.connect(m, schedule.receives, credits.i)
        wiring.connect(m, credits.o, path.ops)
        wiring.connect(m, buffer.o, path.net)
        wiring.connect(m, schedule.sends, sender.ops)
        wiring.connect(m, path.store_ops, storer.ops)
        wiring.connect(m, path.store, storer.beats)
        wiring.connect(m, path.forward, sender.forward)
        # There is always room for data, if everybody keeps to what was granted.
        wiring.connect(m, port.received, buffer.i)
        wiring.connect(m, sender.o, port.beats)
        wiring.connect(m, wiring.flipped(self.i), port.i)
        wiring.connect(m, port.o, wiring.flipped(self.o))
        connect_channels(m, loader.axi, self.axi, "ar", "r")
        connect_channels(m, storer.axi, self.axi, "aw", "w", "b")

        beat = loader.beats.payload
        m.d.comb += [
            sender.load.payload.eq(beat.data),
            sender.load.valid.eq(loader.beats.valid & beat.to_send),
            path.load.payload.eq(beat.data),
            path.load.valid.eq(loader.beats.valid & ~beat.to_send),
            loader.beats.ready.eq(Mux(beat.to_send, sender.load.ready, path.load.ready)),
            credits.popped.eq(buffer.o.valid & buffer.o.ready),
            path.seed.eq(schedule.job.seed),
            path.stream.eq(schedule.job.stream),
            sender.own.eq(schedule.job.signature),
            self.axi_error.eq(loader.error | storer.error),
            sender.stop.eq(self.stop),
            # What the Sender has to send yet is in the Loader or in the ReceivePath, which has whatever the
            # CreditManager waits for.
            self.idle.eq(~(schedule.busy | self.o.valid) & loader.idle & storer.quiet & path.idle),
        ]
        m.d.comb += [
            port.core.eq(self.core),
            port.own.eq(schedule.job.signature),
            port.refuses.eq(sender.refuses),
            port.receiver.eq(sender.peer),
            port.ready.eq(credits.ready),
            port.grant.eq(credits.grant),
            port.sender.eq(credits.peer),
            credits.told.eq(port.told),
            sender.put.eq(port.put),
            sender.granted.eq(port.granted),
            sender.source.eq(port.source),
            sender.announced.eq(port.announced),
            self.disagreement.eq(Mux(sender.disagreement.valid, sender.disagreement, port.refused)),
        ]
        m.d.comb += self.peer.valid.eq(1)
        with m.If(sender.wait_ready):
            m.d.comb += self.peer.core.eq(sender.ops.payload.peer)
        with m.Elif(sender.wait_credit):
            m.d.comb += self.peer.core.eq(sender.peer)
        with m.Elif(path.wait_net):
            m.d.comb += self.peer.core.eq(credits.peer)
        with m.Else():
            m.d.comb += self.peer.valid.eq(0)

        events = self.events
        m.d.comb += [
            events.sent.eq(self.o.valid & self.o.ready & (self.o.payload.header.kind == FlitKind.DATA)),
            events.received.eq(buffer.i.valid & buffer.i.ready),
            events.wait_ready.eq(sender.wait_ready),
            events.wait_credit.eq(sender.wait_credit),
            events.wait_link.eq(self.o.valid & ~self.o.ready),
            events.wait_net.eq(path.wait_net),
            events.wait_load.eq(path.wait_load | sender.wait_load),
            events.wait_store.eq(path.store.valid & ~path.store.ready),
        ]
        return m
