"""The receiving half of a link's end: takes flits in their order, and asks again for the first that is missing."""

from amaranth import Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.link.fifo import FlitFifo
from neuroncore_rtl.hdl.link.flit import RETRY_BITS, body_layout, flit_stream
from neuroncore_rtl.spec.link import SEQUENCE_BITS, VIRTUAL_CHANNELS

__all__ = ["Receiver"]


class Receiver(wiring.Component):
    """Takes a flit in every cycle; it is at `o` in the next.

    A frame counts once the sender has answered every request made. The first of an answer has the number that was
    asked for, and each after it the next one, or some frame was lost in between: then the receiver asks once more. So
    it takes every flit once, in order, without a timer, whatever frames are lost in either direction.

    Arguments:
        link_bytes: of a flit.
        window: flits that each input buffer holds, a power of two less one.

    Ports:
        heard: what came, if `good`.
        o: flits of each virtual channel.
        expected, retry, credits_returned: to be sent to the other end, as in :func:`~hdl.link.flit.body_layout`.
        discarded: a flit came, and was not taken.

    Attributes:
        takes: the flit that came is taken. fifos: the input buffers.
    """

    def __init__(self, link_bytes: int, window: int):
        self.link_bytes = link_bytes
        self.window = window
        self.takes = Signal()
        self.fifos = [FlitFifo(link_bytes, window) for _ in range(VIRTUAL_CHANNELS)]
        super().__init__(
            {
                "heard": In(body_layout(link_bytes)),
                "good": In(1),
                "o": Out(flit_stream(link_bytes)).array(VIRTUAL_CHANNELS),
                "expected": Out(SEQUENCE_BITS),
                "retry": Out(RETRY_BITS),
                "credits_returned": Out(data.ArrayLayout(SEQUENCE_BITS, VIRTUAL_CHANNELS)),
                "discarded": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        counts, fits, takes = Signal(), Signal(), self.takes
        m.d.comb += [
            counts.eq(self.good & (self.heard.answer == self.retry)),
            fits.eq(self.heard.sequence == self.expected),
            takes.eq(counts & fits & self.heard.valid),
            self.discarded.eq(self.good & self.heard.valid & ~takes),
        ]
        m.d.sync += [
            self.expected.eq(self.expected + takes),
            self.retry.eq(self.retry + (counts & ~fits)),
        ]
        for vc, fifo in enumerate(self.fifos):
            m.submodules[f"fifo{vc}"] = fifo
            m.d.comb += [fifo.write.eq(takes & (self.heard.vc == vc)), fifo.flit.eq(self.heard.flit)]
            m.d.comb += self.credits_returned[vc].eq(fifo.credits_returned)
            wiring.connect(m, fifo.o, wiring.flipped(self.o[vc]))
        return m
