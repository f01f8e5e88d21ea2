"""Channel: half of a collective engine, with its own HBM port and router port.

    job -> Schedule -+-> loads ------> Loader ----------+
                     +-> receives ---> CreditManager ---+-> ReceivePath -> forward --+
                     |                      |       ^       |                        |
                     +-> send_loads -> Loader ------|-------|------------------------+-> Sender -> flits
                     +-> sends -------------|-------|-------|------------------------+
                                            |       |       +-> Storer
           flits -> buffer (DATA) ----------|-------+
                 -> Sender (READY, GRANT)   +-> flits (READY, GRANT)

Freedom from deadlock. Claim: the channels of a group never wait for each other in a circle.

Resources. A channel executes one list of operations, in the order of the Schedule: per step a load, a receive, and a
send of the result. Each unit has a queue of its own, and all operations of a step enter the queues together. So
the first operation of the list that is not done waits for one of five resources:

1. The router, to accept a flit. It does eventually, as every channel accepts what arrives: control flits into the
   Mailbox or a counter, data into buffer space reserved by credits.
2. HBM, which responds eventually. Sender and ReceivePath have a Loader each, which serves them in list order and has
   room for what it requests.
3. READY, which a receiver sends when it has received everything from its previous sender. In a ring only the first
   operations of an instruction need it; they wait for those of an earlier instruction. In ALL_TO_ALL the cores at the
   lowest step wait only for cores at the same step, and sending does not wait for receiving in a step.
4. Data, from the operation with the same index in the upstream core's list.
5. Credit, for buffer space of the downstream core.

Order. In a ring, send operation j + 1 forwards the data of receive operation j; operations without elements have
indices too.

Contradiction. Suppose that all ranks of a ring wait.

1. Follow the waits upstream: a sender without data waits for the receiver of its own core, which waits for data of the
   upstream sender, and so on. This ends at a sender that loads from HBM, or at a sender without credit. HBM responds,
   so some sender has no credit.
2. Let a sender at operation i have no credit. The downstream buffer holds two largest segments, and the receiver grants
   credits only in units of half the buffer. So more than one largest segment is sent and not consumed. Operation i is
   at most one segment, so the downstream receiver is at an operation j < i, and has beats.
3. That receiver waits for its own core's sender to accept forwarded beats. The sender is at an operation i' with
   i' <= j + 1 <= i. It has beats, so it has no credit either, and step 2 applies to it.
4. Around the ring i never rises, so it is the same in all cores: all senders are at operation i, all receivers at
   i - 1.
5. Each receiver has consumed at least as many beats of i - 1 as its own sender has sent of i.
6. By step 2, each sender has sent more beats of i than the downstream receiver has consumed of i - 1.
7. By steps 5 and 6 the number of consumed beats falls from each rank to the next, all around the ring: impossible.

A broadcast is a chain of cores, and a transfer has one sender and one receiver. The token that precedes the data closes
this chain to a ring, but it waits only for READY, which its receiver sends before all else.
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
from neuroncore_rtl.hdl.dma.job import BURST_BEATS
from neuroncore_rtl.hdl.link.flit import flit_stream
from neuroncore_rtl.hdl.memory.axi import AxiPort, connect_channels
from neuroncore_rtl.hdl.memory.read_arbiter import ReadArbiter
from neuroncore_rtl.hdl.primitives.fifo import BufferedFifo
from neuroncore_rtl.spec.link import CORE_BITS, FlitKind

__all__ = ["Channel", "buffer_beats"]


def buffer_beats(link_bytes: int) -> int:
    """Return a receiver's buffer size in flits: two largest segments of four-byte elements."""
    return 2 * SEGMENT_ELEMENTS * 4 // link_bytes


class Channel(wiring.Component):
    """Executes one direction of a job; one flit per cycle each way without stalls.

    Channel 0 sends to the next rank, channel 1 to the previous one, at most `rate` bytes per cycle (0: no limit).

    Ports:
        job: legal jobs; the next one is offered when the previous one is done.
        core: number of this core; constant.
        idle: no part of a job is pending, and HBM has answered all stores.
        stop: while set, no more data is sent.
        axi_error: HBM returned an error; stays until reset.
        disagreement: the instruction of a core that should receive from this core or send to it differs; stays until
            reset.
        peer: core that this channel waits for: the core that must send READY or GRANT to the sender, or else the core
            that must send data to the ReceivePath.
        events: events of this cycle, counted in `ChannelCounters`.
    """

    def __init__(self, link_bytes: int, hbm_bytes: int, cores: int, channel: int, rate: int = 0):
        self.rate = rate
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
        m.submodules.send_loader = send_loader = CollectiveLoader(self.link_bytes, self.hbm_bytes)
        m.submodules.loads = loads = ReadArbiter(self.hbm_bytes, -(-loader.words // BURST_BEATS))
        m.submodules.storer = storer = Storer(self.link_bytes, self.hbm_bytes)
        m.submodules.buffer = buffer = BufferedFifo(8 * self.link_bytes, window)
        m.submodules.credits = credits = CreditManager(self.link_bytes, window)
        m.submodules.path = path = ReceivePath(self.link_bytes)
        m.submodules.sender = sender = CollectiveSender(self.link_bytes, self.cores, window, self.rate)
        m.submodules.port = port = RouterPort(self.link_bytes, self.channel)
        wiring.connect(m, wiring.flipped(self.job), schedule.i)
        wiring.connect(m, schedule.loads, loader.ops)
        wiring.connect(m, schedule.send_loads, send_loader.ops)
        wiring.connect(m, loader.beats, path.load)
        wiring.connect(m, send_loader.beats, sender.load)
        wiring.connect(m, send_loader.axi, loads.managers[0])
        wiring.connect(m, loader.axi, loads.managers[1])
        wiring.connect(m, schedule.receives, credits.i)
        wiring.connect(m, credits.o, path.ops)
        wiring.connect(m, buffer.o, path.net)
        wiring.connect(m, schedule.sends, sender.ops)
        wiring.connect(m, path.store_ops, storer.ops)
        wiring.connect(m, path.store, storer.beats)
        wiring.connect(m, path.forward, sender.forward)
        # Credits ensure that the buffer has room for data.
        wiring.connect(m, port.received, buffer.i)
        wiring.connect(m, sender.o, port.beats)
        wiring.connect(m, wiring.flipped(self.i), port.i)
        wiring.connect(m, port.o, wiring.flipped(self.o))
        connect_channels(m, loads.port, self.axi, "ar", "r")
        connect_channels(m, storer.axi, self.axi, "aw", "w", "b")

        m.d.comb += [
            credits.popped.eq(buffer.o.valid & buffer.o.ready),
            path.seed.eq(schedule.job.seed),
            path.stream.eq(schedule.job.stream),
            sender.own.eq(schedule.job.signature),
            self.axi_error.eq(loader.error | send_loader.error | storer.error),
            sender.stop.eq(self.stop),
            # The Sender needs no term: its pending data is in its Loader or the ReceivePath. Neither does the
            # CreditManager: it stalls an operation only while the ReceivePath has one.
            self.idle.eq(~(schedule.busy | self.o.valid) & loader.idle & send_loader.idle & storer.quiet & path.idle),
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
