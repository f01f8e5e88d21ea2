"""DMA write path: writes the destination's chunks to HBM or an on-chip memory, with bytes from the ring.

    ring -> [beat] -+-> line accesses
                    +-> [burst, ...] -> AXI

A burst's address is issued when all of its beats are buffered, so a slow source never blocks a shared HBM port.
"""

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.dma.beats import beat_address, next_beat
from neuroncore_rtl.hdl.dma.job import chunk_layout
from neuroncore_rtl.hdl.dma.ring import RingRead
from neuroncore_rtl.hdl.memory.axi import AxiPort
from neuroncore_rtl.hdl.memory.port import LineWrite, Storage
from neuroncore_rtl.hdl.primitives.fifo import BufferedFifo
from neuroncore_rtl.spec import timing
from neuroncore_rtl.spec.isa import HBM_ADDRESS_BITS

__all__ = ["HbmWriter"]


class HbmWriter(wiring.Component):
    """Writes one beat of `size` bytes per cycle, without a gap between chunks.

    Ports:
        axi: port to HBM; the read and response channels are not used here.
        hungry: the ring buffer lacks bytes for the next beat.
        stop: while set, no more bytes are read from the ring buffer.
        free: the beat register is empty, or its beat is accepted in this cycle.
        idle: the beat register is empty.
        burst: a burst is completed by a beat in this cycle.
        room: another burst may be completed: fewer than the allowed number are unanswered.
    """

    BEATS = timing.WRITER_BEATS
    """Maximum number of beats buffered for incomplete or unsent bursts."""

    def __init__(self, size: int):
        self.size = size
        super().__init__(
            {
                "i": In(stream.Signature(chunk_layout(size))),
                "ring": Out(RingRead(size)),
                "axi": Out(AxiPort(size, 1)),
                "line": Out(LineWrite(size)),
                "hungry": Out(1),
                "stop": In(1),
                "free": Out(1),
                "idle": Out(1),
                "burst": Out(1),
                "room": In(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        chunk = Signal(chunk_layout(self.size), reset_less=True)  # chunk that `beat` is part of
        beat = Signal(self._beat_layout, reset_less=True)
        valid, taken, to_hbm = Signal(), Signal(), Signal()
        m.d.comb += [self.free.eq(~valid | taken), self.idle.eq(~valid), to_hbm.eq(chunk.storage == Storage.HBM)]
        with m.If(self.free):
            m.d.sync += valid.eq(self.ring.take)
        self._take(m, chunk, beat)
        self._write_line(m, chunk, beat, valid & ~to_hbm)
        pushes = self._write_burst(m, chunk, beat, valid & to_hbm)
        m.d.comb += taken.eq(Mux(to_hbm, pushes, self.line.ready))
        return m

    @property
    def _beat_layout(self) -> data.StructLayout:
        return data.StructLayout({"data": 8 * self.size, "strobes": self.size, "last": 1})

    def _take(self, m: Module, chunk, beat) -> None:
        offset, count, last = next_beat(m, self.size, self.i.payload.address, self.i.payload.bytes, self.ring.take)
        m.d.comb += [
            self.ring.offset.eq(offset),
            self.ring.count.eq(count),
            self.hungry.eq(self.ring.level < count),
            self.ring.take.eq(self.i.valid & ~self.hungry & self.free & ~self.stop),
            self.i.ready.eq(self.ring.take & last),
        ]
        with m.If(self.ring.take):
            m.d.sync += [
                chunk.eq(self.i.payload),
                beat.data.eq(self.ring.data),
                beat.strobes.eq((~(Const(-1, self.size) << count)[: self.size] << offset)[: self.size]),
                beat.last.eq(last),
            ]

    def _write_line(self, m: Module, chunk, beat, valid: Value) -> None:
        m.d.comb += [
            self.line.valid.eq(valid),
            self.line.storage.eq(Value.cast(chunk.storage)[:1]),
            self.line.partition.eq(chunk.partition),
            self.line.address.eq(beat_address(chunk.address, self.size)),
            self.line.data.eq(beat.data),
            self.line.mask.eq(beat.strobes),
        ]

    def _write_burst(self, m: Module, chunk, beat, valid: Value) -> Signal:
        """Append a beat to its burst, and send complete bursts. Return whether the beat is appended in this cycle."""
        place_bits = (self.size - 1).bit_length()
        address = data.StructLayout({"beat": HBM_ADDRESS_BITS - place_bits, "len": 8})
        m.submodules.beats = beats = BufferedFifo(beat.shape(), self.BEATS)
        m.submodules.addresses = addresses = BufferedFifo(address, self.BEATS)
        beat_out, address_out = beats.o.payload, addresses.o.payload
        complete, pushes, sent = Signal(range(self.BEATS + 1)), Signal(), Signal()
        m.d.comb += [
            pushes.eq(valid & beats.i.ready & addresses.i.ready & self.room),
            self.burst.eq(pushes & beat.last),
            beats.i.valid.eq(pushes),
            beats.i.payload.eq(beat),
            addresses.i.valid.eq(self.burst),
            addresses.i.payload.beat.eq(chunk.address[place_bits:]),
            addresses.i.payload.len.eq((chunk.address[:place_bits] + chunk.bytes - 1)[place_bits:]),
            self.axi.aw.valid.eq(addresses.o.valid),
            self.axi.aw.payload.addr.eq(Cat(Const(0, place_bits), address_out.beat)),
            self.axi.aw.payload.len.eq(address_out.len),
            addresses.o.ready.eq(self.axi.aw.ready),
            self.axi.w.valid.eq(beats.o.valid & (complete != 0)),
            self.axi.w.payload.data.eq(beat_out.data),
            self.axi.w.payload.strb.eq(beat_out.strobes),
            self.axi.w.payload.last.eq(beat_out.last),
            beats.o.ready.eq(self.axi.w.valid & self.axi.w.ready),
            sent.eq(beats.o.ready & beat_out.last),
        ]
        m.d.sync += complete.eq(complete + self.burst - sent)
        return pushes
