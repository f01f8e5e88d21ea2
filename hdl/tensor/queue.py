"""A short queue that costs no cycle while it is empty."""

from amaranth import Module, Mux, Value
from amaranth.lib import stream, wiring
from amaranth.lib.fifo import SyncFIFO
from amaranth.lib.wiring import In, Out

__all__ = ["PassingQueue"]


class PassingQueue(wiring.Component):
    """Keeps what the reader does not take at once.

    Arguments:
        shape: of a word.
        depth: places.

    Ports:
        i: words. Ready does not depend on the reader.
        o: the words in order; a word shows in the cycle in which it comes if the queue is empty.
    """

    def __init__(self, shape, depth: int):
        self.shape = shape
        self.depth = depth
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape))})

    def elaborate(self, platform):
        m = Module()
        word = Value.cast(self.i.payload)
        m.submodules.places = places = SyncFIFO(width=len(word), depth=self.depth)
        m.d.comb += [
            places.w_data.eq(word),
            places.w_en.eq(self.i.valid & (places.r_rdy | ~self.o.ready)),
            places.r_en.eq(self.o.ready),
            self.i.ready.eq(places.w_rdy),
            self.o.valid.eq(places.r_rdy | self.i.valid),
            Value.cast(self.o.payload).eq(Mux(places.r_rdy, places.r_data, word)),
        ]
        return m
