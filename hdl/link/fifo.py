"""Input buffer of a virtual channel."""

from amaranth import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.link.flit import flit_layout, flit_stream
from neuroncore_rtl.spec.link import SEQUENCE_BITS

__all__ = ["FlitFifo"]


class FlitFifo(wiring.Component):
    """Accepts a flit in every cycle: credits ensure that there is room. Latency: 1 cycle.

    Arguments:
        link_bytes: data bytes per flit.
        window: capacity in flits, a power of two minus one.

    Ports:
        write: `flit` is written at the end of this cycle.
        o: the flits, in order.
        credits_returned: number of flits read since reset, modulo 2 ** SEQUENCE_BITS.

    Attributes:
        end: number of flits written, modulo the depth of the memory.
        memory: the stored flits; flit n (counted from reset) is at address n modulo the depth.
    """

    def __init__(self, link_bytes: int, window: int):
        self.link_bytes = link_bytes
        self.window = window
        self.end = Signal(range(window + 1))
        self.memory = Memory(shape=flit_layout(link_bytes), depth=window + 1, init=[])
        super().__init__(
            {
                "write": In(1),
                "flit": In(flit_layout(link_bytes)),
                "o": Out(flit_stream(link_bytes)),
                "credits_returned": Out(SEQUENCE_BITS),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory = memory = self.memory
        writer = memory.write_port()
        reader = memory.read_port(transparent_for=(writer,))
        end, following = self.end, Signal(SEQUENCE_BITS)
        index_bits = len(end)
        m.d.comb += [
            writer.en.eq(self.write),
            writer.addr.eq(end),
            writer.data.eq(self.flit),
            self.o.valid.eq(self.credits_returned[:index_bits] != end),
            self.o.payload.eq(reader.data),
            following.eq(self.credits_returned + (self.o.valid & self.o.ready)),
            reader.addr.eq(following[:index_bits]),
        ]
        m.d.sync += [self.credits_returned.eq(following), end.eq(end + self.write)]
        return m
