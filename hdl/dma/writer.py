"""Writes the chunks of a copy's destination, to HBM or on chip, with bytes from the ring.

    ring -> [beat] -+-> line accesses
                    +-> [burst, ...] -> AXI

A burst's address is not given before all of its beats are there: a port to HBM that others use does not wait for a slow
source.
"""

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.dma.instruction import Memory
from neuroncore_rtl.hdl.dma.job import BURST_BEATS, chunk_layout
from neuroncore_rtl.hdl.fifo import BufferedFifo
from neuroncore_rtl.hdl.memory.axi import AxiPort
from neuroncore_rtl.hdl.memory.port import LineWrite
from neuroncore_rtl.spec.isa import HBM_ADDRESS_BITS

__all__ = ["Writer"]


class Writer(wiring.Component):
    """One beat a cycle, without a gap between chunks.

    Arguments:
        size: bytes of a beat.

    Ports:
        i: chunks.
        level, take, count, offset, data: see :class:`hdl.dma.ring.ByteRing`.
        axi: of HBM; its channels of reads and answers are idle. line: of the on-chip memories.
        hungry: the next beat lacks bytes. stop: no more of them are taken.
        free: no beat is here, or it goes to the memory or to its burst at the end of this cycle.
        burst: one is complete. room: there may be one more.
    """

    BEATS = 2 * BURST_BEATS
    """Beats that wait for the rest of their burst, or to be taken."""

    def __init__(self, size: int):
        self.size = size
        super().__init__(
            {
                "i": In(stream.Signature(chunk_layout(size))),
                "level": In(range(2 * size + 1)),
                "take": Out(1),
                "count": Out(range(size + 1)),
                "offset": Out(range(size)),
                "data": In(8 * size),
                "axi": Out(AxiPort(size, 1)),
                "line": Out(LineWrite(size)),
                "hungry": Out(1),
                "stop": In(1),
                "free": Out(1),
                "burst": Out(1),
                "room": In(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        size, chunk = self.size, self.i.payload
        place_bits = (size - 1).bit_length()

        # Which bytes are next.
        begun, left, remaining = Signal(), Signal.like(chunk.bytes, reset_less=True), Signal.like(chunk.bytes)
        last, ends = Signal(), Signal(range(size + 1))
        m.d.comb += [
            self.offset.eq(Mux(begun, 0, chunk.address[:place_bits])),
            ends.eq(size - self.offset),
            remaining.eq(Mux(begun, left, chunk.bytes)),
            last.eq(remaining <= ends),
            self.count.eq(Mux(last, remaining, ends)),
            self.hungry.eq(self.level < self.count),
            self.take.eq(self.i.valid & ~self.hungry & self.free & ~self.stop),
            self.i.ready.eq(self.take & last),
        ]
        with m.If(self.take):
            m.d.sync += [begun.eq(~last), left.eq(remaining - self.count)]

        # One beat.
        beat = Signal(data.StructLayout({"data": 8 * size, "strobes": size, "last": 1}), reset_less=True)
        now, valid, taken = Signal(chunk_layout(size), reset_less=True), Signal(), Signal()
        to_hbm = Signal()
        m.d.comb += [self.free.eq(~valid | taken), to_hbm.eq(now.memory == Memory.HBM)]
        with m.If(self.free):
            m.d.sync += valid.eq(self.take)
        with m.If(self.take):
            m.d.sync += [
                now.eq(chunk),
                beat.data.eq(self.data),
                beat.strobes.eq((~(Const(-1, size) << self.count)[:size] << self.offset)[:size]),
                beat.last.eq(last),
            ]
        m.d.comb += [
            self.line.valid.eq(valid & ~to_hbm),
            self.line.storage.eq(Value.cast(now.memory)[:1]),
            self.line.partition.eq(now.partition),
            self.line.address.eq(Cat(Const(0, place_bits), now.address[place_bits:])),
            self.line.data.eq(beat.data),
            self.line.mask.eq(beat.strobes),
        ]

        # Bursts.
        address = data.StructLayout({"beat": HBM_ADDRESS_BITS - place_bits, "len": 8})
        m.submodules.beats = beats = BufferedFifo(beat.shape(), self.BEATS)
        m.submodules.addresses = addresses = BufferedFifo(address, self.BEATS)
        beat_out, address_out = beats.o.payload, addresses.o.payload
        complete, pushes, sent = Signal(range(self.BEATS + 1)), Signal(), Signal()
        m.d.comb += [
            pushes.eq(valid & to_hbm & beats.i.ready & addresses.i.ready & self.room),
            self.burst.eq(pushes & beat.last),
            taken.eq(Mux(to_hbm, pushes, self.line.ready)),
            beats.i.valid.eq(pushes),
            beats.i.payload.eq(beat),
            addresses.i.valid.eq(self.burst),
            addresses.i.payload.beat.eq(now.address[place_bits:]),
            addresses.i.payload.len.eq((now.address[:place_bits] + now.bytes - 1)[place_bits:]),
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
        return m
