"""Receiving half of a link end: accepts flits in order, and requests a replay from the first missing one."""

from amaranth import Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.link.fifo import FlitFifo
from neuroncore_rtl.hdl.link.flit import RETRY_BITS, body_layout, flit_stream
from neuroncore_rtl.spec.link import SEQUENCE_BITS, VIRTUAL_CHANNELS

__all__ = ["Receiver"]


class Receiver(wiring.Component):
    """Accepts a flit in every cycle; the flit is at `o` in the next cycle.

    Each flit is accepted exactly once and in order, without a timer, whatever frames are lost in either direction:

    1. Frames count only after the sender has answered every replay request.
    2. The first frame after an answer has the requested number; each further one has the number expected next.
    3. Any other number means that a frame was lost, so the receiver requests another replay.

    Arguments:
        link_bytes: data bytes per flit.
        window: capacity of each input buffer in flits, a power of two minus one.

    Ports:
        heard: body of the received frame, valid if `good`.
        expected: field of the next frame to send, like `retry` and `credits_returned`; see `body_layout`.
        discarded: a flit is received in this cycle and not accepted.

    Attributes:
        takes: a flit is received in this cycle and accepted.
        fifos: the input buffers, one per virtual channel.
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
