"""FIFOs and registers between streams, with typed entries."""

from amaranth import Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.fifo import SyncFIFO, SyncFIFOBuffered
from amaranth.lib.wiring import In, Out

__all__ = ["BufferedFifo", "BypassFifo", "Fifo", "StreamRegister"]


class Fifo(wiring.Component):
    """Synchronous FIFO. Latency: 1 cycle.

    Arguments:
        shape: shape of an entry.
        depth: number of entries.

    Ports:
        i: entries to write; `i.ready` does not depend on `o.ready`.
        o: entries to read.
        level: number of entries stored.
    """

    _kind = SyncFIFO

    def __init__(self, shape, depth: int):
        self.shape = shape
        self.depth = depth
        entries = stream.Signature(shape)
        super().__init__({"i": In(entries), "o": Out(entries), "level": Out(range(depth + 1))})

    def elaborate(self, platform):
        m = Module()
        entry = Value.cast(self.i.payload)
        if self.depth == 1 and self._kind is SyncFIFO:
            return self._register(m, entry)
        m.submodules.fifo = fifo = self._kind(width=len(entry), depth=self.depth)
        m.d.comb += [
            fifo.w_data.eq(entry),
            fifo.w_en.eq(self.i.valid),
            self.i.ready.eq(fifo.w_rdy),
            Value.cast(self.o.payload).eq(fifo.r_data),
            self.o.valid.eq(fifo.r_rdy),
            fifo.r_en.eq(self.o.ready),
            self.level.eq(fifo.level),
        ]
        return m

    def _register(self, m: Module, entry: Value) -> Module:
        """Implement a FIFO of depth 1 as a register.

        Amaranth's FIFO would have a zero-width address, which Verilog lacks.
        """
        place = Signal.like(entry, name="place", reset_less=True)
        m.d.comb += [
            self.i.ready.eq(~self.level),
            Value.cast(self.o.payload).eq(place),
            self.o.valid.eq(self.level),
        ]
        with m.If(self.i.valid & self.i.ready):
            m.d.sync += [place.eq(entry), self.level.eq(1)]
        with m.Elif(self.o.ready):
            m.d.sync += self.level.eq(0)
        return m


class StreamRegister(wiring.Component):
    """Pipeline register of a stream: one entry per cycle. Latency: 1 cycle.

    Arguments:
        shape: shape of an entry.

    Ports:
        i: entries to write; `i.ready` depends on `o.ready`.
        o: entries to read.
    """

    def __init__(self, shape):
        entries = stream.Signature(shape)
        super().__init__({"i": In(entries), "o": Out(entries)})

    def elaborate(self, platform):
        m = Module()
        held = Signal.like(self.i.payload, name="held", reset_less=True)
        m.d.comb += [self.i.ready.eq(~self.o.valid | self.o.ready), self.o.payload.eq(held)]
        with m.If(self.i.ready):
            m.d.sync += self.o.valid.eq(self.i.valid)
            m.d.sync += Value.cast(held).eq(Value.cast(self.i.payload))
        return m


class BufferedFifo(Fifo):
    """FIFO with the ports of `Fifo`, in a memory with a synchronous read, such as block RAM. Latency: 2 cycles."""

    _kind = SyncFIFOBuffered


class BypassFifo(Fifo):
    """FIFO with the ports of `Fifo`; an entry written to an empty FIFO can be read in the same cycle. Latency: 0."""

    def elaborate(self, platform):
        m = Module()
        m.submodules.fifo = fifo = Fifo(self.shape, self.depth)
        m.d.comb += [
            fifo.i.payload.eq(self.i.payload),
            fifo.i.valid.eq(self.i.valid & (fifo.o.valid | ~self.o.ready)),
            fifo.o.ready.eq(self.o.ready),
            self.i.ready.eq(fifo.i.ready),
            self.o.valid.eq(fifo.o.valid | self.i.valid),
            self.o.payload.eq(Mux(fifo.o.valid, fifo.o.payload, self.i.payload)),
            self.level.eq(fifo.level),
        ]
        return m
