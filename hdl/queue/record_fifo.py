"""FIFO of prefetched records: one memory per beat of a record."""

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import memory, stream, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.queue.record import RecordBeat

__all__ = ["RecordFifo"]


class RecordFifo(wiring.Component):
    """FIFO of records, written beat by beat. Latency: 1 cycle from the last beat.

    A bus of complete records to all queues would need a thousand wires across the chip.

    Arguments:
        shape: stored part of a record: its lowest bits, and as the highest bit the error bit.
        size: bytes of a beat.
        depth: number of records; the writer must know that an entry is free.

    Ports:
        beat: beats of the arriving record.
        o: the oldest complete record.
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
            parts.append(self._store(m, f"beat{number}", part, here, write, read))
        parts.append(self._store(m, "error", beat.error, came, write, read))
        m.d.comb += Value.cast(self.o.payload).eq(Cat(parts))
        return m

    def _store(self, m: Module, name: str, part: Value, here: Value, write: Signal, read: Signal) -> Value:
        if self.depth == 1:  # a memory of one entry would need zero-width addresses, which Verilog does not have
            place = Signal(len(part), name=name, reset_less=True)
            with m.If(here):
                m.d.sync += place.eq(part)
            return place
        m.submodules[name] = storage = memory.Memory(shape=len(part), depth=self.depth, init=[])
        port, oldest = storage.write_port(), storage.read_port(domain="comb")
        m.d.comb += [port.en.eq(here), port.addr.eq(write), port.data.eq(part), oldest.addr.eq(read)]
        return oldest.data
