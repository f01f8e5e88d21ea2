"""A sender and a receiver with a hostile wire between them, and what must hold of them.

The wire has some registers each way. In every cycle each of them takes the frame before it or keeps its own, which
loses the other, and what the last one holds is heard or not: so frames are lost, delayed and delivered again as the
solver likes, only never in another order. A frame whose check is wrong is one that is not heard. Routers are free, too.
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
from neuroncore_rtl.tb.proofs.proof import Model, Proof, stay
from neuroncore_rtl.tb.proofs.solver import Method

__all__ = ["PROOFS", "WINDOW", "Contents", "EndToEnd", "FifoModel", "Progress"]

LINK_BYTES = 1

WINDOW = 3
"""Flits that a sender may have under way in the proofs."""


class LinkModel(wiring.Component):
    """One way of a link, and of the other what concerns it; the base of the proofs.

    Arguments:
        window, receiver_window: of the sender and of the receiver, which should be the same.
        stages: registers each way, those of the ends among them.

    Ports:
        i, ready: the routers. keep, hears: what the wire does to each stage of each direction, and whether what comes
            out is heard. watched: any number, which stays.
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
        """Return the frames of a direction, from what comes out to what its end makes now."""
        frames = [newest]
        for stage in range(self.stages):
            held = Signal(body_layout(LINK_BYTES), name=f"way{way}_stage{stage}")
            with m.If(~self.keep[way][stage]):
                m.d.sync += held.eq(frames[0])
            frames.insert(0, held)
        m.d.comb += [far.heard.eq(frames[0]), far.good.eq(self.hears[way])]
        return frames


class EndToEnd(LinkModel):
    """Flit n that leaves a virtual channel is flit n that was taken for it, and it was taken before. n is any."""

    def properties(self, m):
        for vc in range(VIRTUAL_CHANNELS):
            flits, out = self.sender.i[vc], self.receiver.o[vc]
            came, went = (Signal(SEQUENCE_BITS, name=f"{name}{vc}") for name in ("came", "went"))
            flit = Signal(flit_layout(LINK_BYTES), name=f"flit{vc}")
            with m.If(flits.valid & flits.ready):
                m.d.sync += came.eq(came + 1)
                with m.If(came == self.watched):
                    m.d.sync += flit.eq(flits.payload)
            with m.If(out.valid):
                m.d.comb += Assert(went != came)
                with m.If(went == self.watched):
                    m.d.comb += Assert(out.payload.as_value() == flit.as_value())
            with m.If(out.valid & out.ready):
                m.d.sync += went.eq(went + 1)


class Progress(LinkModel):
    """`after` cycles behind the last trouble on the wire all flits taken before have arrived, and no request is open.

    Arguments:
        trouble: cycles in which the wire does what it likes, and flits are taken.
    """

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
    """All numbers under way are in order, from the sender's oldest flit to its newest; and so no number is taken for
    one that lies 2 ** SEQUENCE_BITS before or behind it. It is what induction needs of them, too."""

    def properties(self, m):
        sender, receiver = self.sender, self.receiver
        # A request is not made until the one before it has been answered, and what came before the answer is over.
        retries = [frame.answer for frame in self.frames] + [answer.retry for answer in self.answers]
        m.d.comb += Assert(spread(retries) <= 1)
        for answer in self.answers:
            with m.If((sender.o.answer != receiver.retry) & (answer.retry == receiver.retry)):
                m.d.comb += Assert(answer.expected == receiver.expected)

        # Each frame that counts says which flit comes behind it.
        self.behind = []
        for frame in self.frames:
            behind = Signal(SEQUENCE_BITS)
            m.d.comb += behind.eq(Mux(frame.answer == receiver.retry, frame.sequence + frame.valid, receiver.expected))
            self.behind.append(behind)
        known = [sender.known, *(answer.expected for answer in self.answers)]
        m.d.comb += Assert(spread([*known, *self.behind, sender.end]) <= self.window)


class Contents(Numbers):
    """Flit n that the receiver takes is flit n that the sender took, and its buffer has a place for it. n is any."""

    def properties(self, m):
        super().properties(m)
        sender, receiver, places = self.sender, self.receiver, self.places

        def under_way(number):
            """Whether a flit has been taken, and has not come to the receiver."""
            first = receiver.expected[: len(number)]
            return (number - first)[: len(number)] < (sender.end - receiver.expected)[:SEQUENCE_BITS]

        # What the sender keeps, by what came in.
        slot = self.watched[:places]
        written = Signal(sender.memory.shape)
        with m.If(sender.accepted & (sender.end[:places] == slot)):
            for vc in range(VIRTUAL_CHANNELS):
                with m.If(sender.i[vc].valid & sender.i[vc].ready):
                    m.d.sync += [written.flit.eq(sender.i[vc].payload), written.vc.eq(vc)]
        with m.If(under_way(slot)):
            m.d.comb += Assert(kept_at(m, sender, slot).as_value() == written.as_value())

        # What is under way, by what the sender keeps; and so what is taken.
        for frame in self.frames:
            kept = kept_at(m, sender, frame.sequence[:places])
            with m.If(frame.valid & (frame.answer == receiver.retry) & under_way(frame.sequence)):
                m.d.comb += [Assert(frame.flit == kept.flit), Assert(frame.vc == kept.vc)]
        with m.If(receiver.takes & (receiver.expected[:places] == slot)):
            heard = receiver.heard
            m.d.comb += Assert(heard.flit.as_value() == written.flit.as_value())
            m.d.comb += Assert(heard.vc == written.vc)

        # Credits: what the sender believes taken is free again and not yet heard of, in the buffer, or under way.
        numbers = range(self.window + 1)
        vcs = [(under_way(Const(place, places)), kept_at(m, sender, place).vc) for place in numbers]
        for vc, fifo in enumerate(receiver.fifos):
            come = Signal(SEQUENCE_BITS, name=f"come{vc}")
            m.d.sync += come.eq(come + fifo.write)
            flying = reduce(add, (on_its_way & (which == vc) for on_its_way, which in vcs))
            freed = [sender.credits_returned[vc], *(answer.credits_returned[vc] for answer in self.answers)]
            used = (sender.credits_consumed[vc] - sender.credits_returned[vc])[:SEQUENCE_BITS]
            m.d.comb += [
                Assert(come[:places] == fifo.end),
                Assert(spread([*freed, come]) + flying == used),
                Assert(spread([*freed, come]) + flying <= self.window),
            ]
            with m.If(fifo.write):
                m.d.comb += Assert((come - fifo.credits_returned)[:SEQUENCE_BITS] < self.window)


class FifoModel(Model):
    """Flit n that leaves a buffer is flit n that came, if none comes without room. n is any."""

    def __init__(self, window):
        self.window = window
        super().__init__(FlitFifo(LINK_BYTES, window), watched=window.bit_length())

    def properties(self, m):
        fifo, watched, places = self.unit, self.watched, self.window.bit_length()
        come, level = Signal(SEQUENCE_BITS), Signal(SEQUENCE_BITS)
        written = Signal(flit_layout(LINK_BYTES))
        m.d.comb += [
            level.eq(come - fifo.credits_returned),
            Assume(~fifo.write | (level < self.window)),
            Assert(level <= self.window),
            Assert(come[:places] == fifo.end),
            Assert(fifo.o.valid == (level != 0)),
        ]
        m.d.sync += come.eq(come + fifo.write)
        with m.If(fifo.write & (come[:places] == watched)):
            m.d.sync += written.eq(fifo.flit)
        with m.If((watched - fifo.credits_returned[:places])[:places] < level):
            m.d.comb += Assert(kept_at(m, fifo, watched).as_value() == written.as_value())
        with m.If(fifo.o.valid & (fifo.credits_returned[:places] == watched)):
            m.d.comb += Assert(fifo.o.payload.as_value() == written.as_value())


def kept_at(m, unit, place):
    """Return what the memory of a unit holds at a place."""
    port = unit.memory.read_port(domain="comb")
    m.d.comb += port.addr.eq(place)
    return port.data


def spread(numbers):
    """Return how far it is through numbers that count up, modulo their range; without it, so that it tells of one that
    counts down."""
    return reduce(add, ((after - before)[: len(before)] for before, after in pairwise(numbers)))


PROOFS = (
    Proof("order and credits", lambda: Contents(WINDOW), 1, Method.INDUCTION),
    Proof("a channel's buffer", lambda: FifoModel(WINDOW), 2, Method.INDUCTION),
    Proof("progress behind trouble", lambda: Progress(WINDOW, trouble=6, after=20), 27),
    Proof("end to end", lambda: EndToEnd(WINDOW, stages=1), 8),
)
