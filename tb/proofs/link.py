"""Proofs of the link protocol: a sender and a receiver, with a wire between them that loses and repeats frames.

In each cycle, each register accepts the previous register's frame, or keeps its old frame and loses the new one. The
far end receives the last register's frame or does not. The solver chooses, so it may lose, delay and repeat frames, but
not reorder them. A frame with a wrong checksum counts as not received. The routers' signals are free.
"""

from functools import reduce
from itertools import pairwise
from operator import add

from amaranth.hdl import Assert, Assume, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from neuroncore_rtl.hdl.link.fifo import FlitFifo
from neuroncore_rtl.hdl.link.flit import body_layout, flit_layout, flit_stream
from neuroncore_rtl.hdl.link.receiver import Receiver
from neuroncore_rtl.hdl.link.sender import LinkSender
from neuroncore_rtl.spec.link import SEQUENCE_BITS, VIRTUAL_CHANNELS
from neuroncore_rtl.tb.proofs.proof import Model, Proof, nth_payload, stay
from neuroncore_rtl.tb.proofs.solver import Method

__all__ = ["PROOFS", "WINDOW", "Contents", "EndToEnd", "FifoModel", "Progress"]

LINK_BYTES = 1

WINDOW = 3
"""Number of flits that the sender may have in flight."""


class LinkModel(wiring.Component):
    """One direction of a link with the reverse path for its answers.

    Arguments:
        window: window of the sender.
        stages: registers in each direction, including those of the ends.
        receiver_window: window of the receiver; default the sender's.

    Ports:
        i: flits from the router.
        ready: the far router accepts a flit, one bit per virtual channel.
        keep: per direction, one bit per register, set when the register keeps its old frame.
        hears: per direction, set when the far end receives the last register's frame.
        watched: an arbitrary constant, such as a flit's index.
    """

    def __init__(self, window, stages=2, receiver_window=None):
        self.window = window
        self.stages = stages
        self.places = window.bit_length()
        self.sender = LinkSender(LINK_BYTES, window)
        self.receiver = Receiver(LINK_BYTES, receiver_window or window)
        super().__init__(
            {
                "i": In(flit_stream(LINK_BYTES)).array(VIRTUAL_CHANNELS),
                "ready": In(VIRTUAL_CHANNELS),
                "keep": In(stages).array(2),
                "hears": In(1).array(2),
                "watched": In(SEQUENCE_BITS),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.sender, m.submodules.receiver = sender, receiver = self.sender, self.receiver
        stay(m, self.watched)
        answer = Signal(body_layout(LINK_BYTES))
        m.d.comb += [
            answer.expected.eq(receiver.expected),
            answer.retry.eq(receiver.retry),
            answer.credits_returned.eq(receiver.credits_returned),
        ]
        self.frames = self._wire(m, 0, sender.o, receiver)
        self.answers = self._wire(m, 1, answer, sender)
        for vc in range(VIRTUAL_CHANNELS):
            wiring.connect(m, sender.i[vc], wiring.flipped(self.i[vc]))
            m.d.comb += receiver.o[vc].ready.eq(self.ready[vc])
        self.properties(m)
        return m

    def _wire(self, m, way, newest, far):
        """Return the frames of a direction, from the frame at the far end to the frame that is being sent."""
        frames = [newest]
        for stage in range(self.stages):
            held = Signal(body_layout(LINK_BYTES), name=f"way{way}_stage{stage}")
            with m.If(~self.keep[way][stage]):
                m.d.sync += held.eq(frames[0])
            frames.insert(0, held)
        m.d.comb += [far.heard.eq(frames[0]), far.good.eq(self.hears[way])]
        return frames


class EndToEnd(LinkModel):
    """The nth flit that a virtual channel delivers is the nth flit accepted for it, accepted earlier, for any n."""

    def properties(self, m):
        for vc in range(VIRTUAL_CHANNELS):
            flits, out = self.sender.i[vc], self.receiver.o[vc]
            moves = flits.valid & flits.ready
            accepted, flit = nth_payload(m, moves, flits.payload, self.watched, f"accepted{vc}")
            delivered = Signal(SEQUENCE_BITS, name=f"delivered{vc}")
            with m.If(out.valid):
                m.d.comb += Assert(delivered != accepted)
                with m.If(delivered == self.watched):
                    m.d.comb += Assert(out.payload.as_value() == flit.as_value())
            with m.If(out.valid & out.ready):
                m.d.sync += delivered.eq(delivered + 1)


class Progress(LinkModel):
    """After `trouble` cycles with wire errors and `after` without, all flits have arrived and no retry is pending."""

    def __init__(self, window, trouble, after):
        self.trouble = trouble
        self.after = after
        super().__init__(window)

    def properties(self, m):
        cycle = Signal(range(self.trouble + self.after + 1))
        with m.If(cycle != self.trouble + self.after):
            m.d.sync += cycle.eq(cycle + 1)
        with m.If(cycle >= self.trouble):
            for way in range(2):
                m.d.comb += [Assume(self.keep[way] == 0), Assume(self.hears[way])]
            m.d.comb += [Assume(~self.i[vc].valid) for vc in range(VIRTUAL_CHANNELS)]
        with m.If(cycle == self.trouble + self.after):
            m.d.comb += [Assert(~self.sender.owed), Assert(self.receiver.expected == self.sender.end)]
            m.d.comb += Assert(self.receiver.retry == self.sender.o.answer)


class Numbers(LinkModel):
    """Sequence numbers in flight are ordered: no number is used for another flit while it is still in flight."""

    def properties(self, m):
        sender, receiver = self.sender, self.receiver
        # A retry is requested only after the previous one was answered and no earlier frame is in flight.
        retries = [frame.answer for frame in self.frames] + [answer.retry for answer in self.answers]
        m.d.comb += Assert(spread(retries) <= 1)
        for answer in self.answers:
            with m.If((sender.o.answer != receiver.retry) & (answer.retry == receiver.retry)):
                m.d.comb += Assert(answer.expected == receiver.expected)

        # From each frame that is not older than the last retry follows the number of the next flit to receive.
        self.behind = []
        for frame in self.frames:
            behind = Signal(SEQUENCE_BITS)
            m.d.comb += behind.eq(Mux(frame.answer == receiver.retry, frame.sequence + frame.valid, receiver.expected))
            self.behind.append(behind)
        known = [sender.known, *(answer.expected for answer in self.answers)]
        m.d.comb += Assert(spread([*known, *self.behind, sender.end]) <= self.window)


class Contents(Numbers):
    """The nth flit that the receiver accepts is the sender's nth flit, and the buffer has room for it, for any n."""

    def properties(self, m):
        super().properties(m)
        sender, receiver, places = self.sender, self.receiver, self.places

        def in_flight(number):
            first = receiver.expected[: len(number)]
            return (number - first)[: len(number)] < (sender.end - receiver.expected)[:SEQUENCE_BITS]

        # 1. The sender's buffer holds the accepted flits.
        slot = self.watched[:places]
        written = Signal(sender.memory.shape)
        with m.If(sender.accepted & (sender.end[:places] == slot)):
            for vc in range(VIRTUAL_CHANNELS):
                with m.If(sender.i[vc].valid & sender.i[vc].ready):
                    m.d.sync += [written.flit.eq(sender.i[vc].payload), written.vc.eq(vc)]
        with m.If(in_flight(slot)):
            m.d.comb += Assert(memory_at(m, sender, slot).as_value() == written.as_value())

        # 2. Frames in flight equal the sender's buffer, and so do received flits.
        for frame in self.frames:
            kept = memory_at(m, sender, frame.sequence[:places])
            with m.If(frame.valid & (frame.answer == receiver.retry) & in_flight(frame.sequence)):
                m.d.comb += [Assert(frame.flit == kept.flit), Assert(frame.vc == kept.vc)]
        with m.If(receiver.takes & (receiver.expected[:places] == slot)):
            heard = receiver.heard
            m.d.comb += Assert(heard.flit.as_value() == written.flit.as_value())
            m.d.comb += Assert(heard.vc == written.vc)

        # 3. Consumed credits are in flight, in the receiver's buffer, or freed but not yet reported to the sender.
        numbers = range(self.window + 1)
        vcs = [(in_flight(Const(place, places)), memory_at(m, sender, place).vc) for place in numbers]
        for vc, fifo in enumerate(receiver.fifos):
            arrived = Signal(SEQUENCE_BITS, name=f"arrived{vc}")
            m.d.sync += arrived.eq(arrived + fifo.write)
            flying = reduce(add, (on_its_way & (which == vc) for on_its_way, which in vcs))
            freed = [sender.credits_returned[vc], *(answer.credits_returned[vc] for answer in self.answers)]
            used = (sender.credits_consumed[vc] - sender.credits_returned[vc])[:SEQUENCE_BITS]
            m.d.comb += [
                Assert(arrived[:places] == fifo.end),
                Assert(spread([*freed, arrived]) + flying == used),
                Assert(spread([*freed, arrived]) + flying <= self.window),
            ]
            with m.If(fifo.write):
                m.d.comb += Assert((arrived - fifo.credits_returned)[:SEQUENCE_BITS] < self.window)


class FifoModel(Model):
    """The nth flit read from a buffer is the nth flit written, if writes occur only with a free entry."""

    def __init__(self, window):
        self.window = window
        super().__init__(FlitFifo(LINK_BYTES, window), watched=window.bit_length())

    def properties(self, m):
        fifo, watched, places = self.unit, self.watched, self.window.bit_length()
        arrived, level = Signal(SEQUENCE_BITS), Signal(SEQUENCE_BITS)
        written = Signal(flit_layout(LINK_BYTES))
        m.d.comb += [
            level.eq(arrived - fifo.credits_returned),
            Assume(~fifo.write | (level < self.window)),
            Assert(level <= self.window),
            Assert(arrived[:places] == fifo.end),
            Assert(fifo.o.valid == (level != 0)),
        ]
        m.d.sync += arrived.eq(arrived + fifo.write)
        with m.If(fifo.write & (arrived[:places] == watched)):
            m.d.sync += written.eq(fifo.flit)
        with m.If((watched - fifo.credits_returned[:places])[:places] < level):
            m.d.comb += Assert(memory_at(m, fifo, watched).as_value() == written.as_value())
        with m.If(fifo.o.valid & (fifo.credits_returned[:places] == watched)):
            m.d.comb += Assert(fifo.o.payload.as_value() == written.as_value())


def memory_at(m, unit, place):
    port = unit.memory.read_port(domain="comb")
    m.d.comb += port.addr.eq(place)
    return port.data


def spread(numbers):
    """Return the sum of the modular differences of successive numbers; it is large if one of them decreases."""
    return reduce(add, ((after - before)[: len(before)] for before, after in pairwise(numbers)))


PROOFS = (
    Proof("order and credits", lambda: Contents(WINDOW), 1, Method.INDUCTION),
    Proof("a channel's buffer", lambda: FifoModel(WINDOW), 2, Method.INDUCTION),
    Proof("progress behind trouble", lambda: Progress(WINDOW, trouble=6, after=20), 27),
    Proof("end to end", lambda: EndToEnd(WINDOW, stages=1), 8),
)
