"""Where a queue keeps the records that were fetched ahead: each beat of a record has a memory of its own."""

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import memory, stream, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.queue.record import RecordBeat

__all__ = ["RecordFifo"]


class RecordFifo(wiring.Component):
    """Holds records, which come beat by beat, until they are taken, in order. Latency: 1 cycle from the last beat.

    A wide register that all queues are fed from would be a thousand wires across a chip; a beat is a few.

    Arguments:
        shape: of what is kept of a record, its lowest bits, and whether there was an error, its highest bit.
        size: bytes of a beat. depth: records; there is always room for what comes.

    Ports:
        beat: of the record that comes. o: the oldest that is whole.
    """

    def __init__(self, shape, size: int, depth: int):
        self.size = size
        self.depth = depth
        beats = stream.Signature(RecordBeat(size), always_ready=True)
        super().__init__({"beat": In(beats), "o": Out(stream.Signature(shape))})

    def elaborate(self, platform):
        m = Module()
        beat, depth = self.beat.payload, self.depth
        write, read = Signal(range(depth)), Signal(range(depth))
        level = Signal(range(depth + 1))
        came, went = Signal(), Signal()
        m.d.comb += [
            self.o.valid.eq(level != 0),
            came.eq(self.beat.valid & beat.last),
            went.eq(self.o.valid & self.o.ready),
        ]
        m.d.sync += level.eq(level + came - went)
        if depth > 1:
            with m.If(came):
                m.d.sync += write.eq(Mux(write == depth - 1, 0, write + 1))
            with m.If(went):
                m.d.sync += read.eq(Mux(read == depth - 1, 0, read + 1))

        kept, bits = len(Value.cast(self.o.payload)) - 1, 8 * self.size
        parts = []
        for number, first in enumerate(range(0, kept, bits)):
            here = self.beat.valid & (beat.place == number)
            part = beat.data[: min(bits, kept - first)]
            parts.append(self._kept(m, f"beat{number}", part, here, write, read))
        parts.append(self._kept(m, "error", beat.error, came, write, read))
        m.d.comb += Value.cast(self.o.payload).eq(Cat(parts))
        return m

    def _kept(self, m: Module, name: str, part: Value, here: Value, write: Signal, read: Signal) -> Value:
        """Remember a part of each record; return that of the oldest."""
        if self.depth == 1:  # a memory of one place would have addresses of no bits, which Verilog has not
            place = Signal(len(part), name=name, reset_less=True)
            with m.If(here):
                m.d.sync += place.eq(part)
            return place
        m.submodules[name] = storage = memory.Memory(shape=len(part), depth=self.depth, init=[])
        port, oldest = storage.write_port(), storage.read_port(domain="comb")
        m.d.comb += [port.en.eq(here), port.addr.eq(write), port.data.eq(part), oldest.addr.eq(read)]
        return oldest.data
