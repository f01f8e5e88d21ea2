"""Reads the chunks of a copy's source, from HBM or on chip, into one buffer.

    chunks -+-> AXI bursts, line accesses -> beats -+-> pieces
            +---> what the beats hold of it --------+

Nothing is asked for without room in the buffer, so what comes is taken at once.
"""

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.dma.instruction import Memory
from neuroncore_rtl.hdl.dma.job import Formats, chunk_layout, piece_layout
from neuroncore_rtl.hdl.fifo import BufferedFifo
from neuroncore_rtl.hdl.memory.axi import RESPONSE_OKAY, AxiPort
from neuroncore_rtl.hdl.memory.port import LineRead

__all__ = ["Reader"]


class Reader(wiring.Component):
    """One access, one burst and one beat a cycle.

    Arguments:
        size: bytes of a beat.

    Ports:
        i: chunks, with the formats of their copy.
        axi: of HBM; its write channels are idle. line: of the on-chip memories.
        o: pieces, in order.
        starved: HBM owes beats, and there is none. busy: a beat is asked for, or has come and not gone on.
    """

    BUFFER_BEATS = 128
    """Beats asked for, or come and not gone on: more than HBM's latency in cycles, as room is taken burst by burst."""

    def __init__(self, size: int):
        self.size = size
        super().__init__(
            {
                "i": In(stream.Signature(chunk_layout(size))),
                "formats": In(Formats),
                "axi": Out(AxiPort(size, 1)),
                "line": Out(LineRead(size)),
                "o": Out(stream.Signature(piece_layout(size))),
                "starved": Out(1),
                "busy": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        size, chunk = self.size, self.i.payload
        place_bits = (size - 1).bit_length()
        held = data.StructLayout({"place": place_bits, "bytes": chunk.bytes.shape(), "formats": Formats})
        beat = data.StructLayout({"data": 8 * size, "bad": 1})
        m.submodules.beats = beats = BufferedFifo(beat, self.BUFFER_BEATS)
        m.submodules.held = helds = BufferedFifo(held, self.BUFFER_BEATS)

        # Requests. Beats of the two kinds keep their order, as one kind waits until those of the other have come.
        place, wanted = chunk.address[:place_bits], Signal(range(self.BUFFER_BEATS + 1))
        free = Signal(range(self.BUFFER_BEATS + 1), init=self.BUFFER_BEATS)
        owed = Signal(range(self.BUFFER_BEATS + 1))  # of HBM
        flight = Signal(LineRead.LATENCY)
        from_hbm, room, burst, access, come, gone = (
            Signal(name=name) for name in ("from_hbm", "room", "burst", "access", "come", "gone")
        )
        m.d.comb += [
            from_hbm.eq(chunk.memory == Memory.HBM),
            wanted.eq((place + chunk.bytes + (size - 1)) >> place_bits),
            room.eq(free >= wanted),
            self.busy.eq(free != self.BUFFER_BEATS),
            self.axi.ar.valid.eq(self.i.valid & from_hbm & room & ~flight.any()),
            self.axi.ar.payload.addr.eq(_aligned(chunk.address, place_bits)),
            self.axi.ar.payload.len.eq(wanted - 1),
            self.line.valid.eq(self.i.valid & ~from_hbm & room & (owed == 0)),
            self.line.storage.eq(Value.cast(chunk.memory)[:1]),
            self.line.partition.eq(chunk.partition),
            self.line.address.eq(_aligned(chunk.address, place_bits)),
            self.line.word.eq(place[2:]),
            burst.eq(self.axi.ar.valid & self.axi.ar.ready),
            access.eq(self.line.valid & self.line.ready),
            self.i.ready.eq(burst | access),
            helds.i.valid.eq(self.i.ready),
            helds.i.payload.place.eq(place),
            helds.i.payload.bytes.eq(chunk.bytes),
            helds.i.payload.formats.eq(self.formats),
        ]
        m.d.sync += [
            flight.eq(Cat(access, flight[:-1])),
            free.eq(free - Mux(self.i.ready, wanted, 0) + gone),
            owed.eq(owed + Mux(burst, wanted, 0) - come),
        ]

        # Beats that come.
        answer = self.axi.r.payload
        m.d.comb += [
            self.axi.r.ready.eq(1),
            come.eq(self.axi.r.valid),
            beats.i.valid.eq(come | flight[-1]),
            beats.i.payload.data.eq(Mux(come, answer.data, self.line.data)),
            beats.i.payload.bad.eq(come & (answer.resp != RESPONSE_OKAY)),
            self.starved.eq((owed != 0) & ~beats.o.valid),
        ]

        # Pieces.
        now, piece = helds.o.payload, self.o.payload
        word = beats.o.payload
        begun, left, remaining = Signal(), Signal.like(now.bytes, reset_less=True), Signal.like(now.bytes)
        last, ends = Signal(), Signal(range(size + 1))
        m.d.comb += [
            self.o.valid.eq(beats.o.valid & helds.o.valid),
            piece.bytes.data.eq(word.data),
            piece.bytes.offset.eq(Mux(begun, 0, now.place)),
            ends.eq(size - piece.bytes.offset),
            remaining.eq(Mux(begun, left, now.bytes)),
            last.eq(remaining <= ends),
            piece.bytes.count.eq(Mux(last, remaining, ends)),
            piece.formats.eq(now.formats),
            piece.bad.eq(word.bad),
            gone.eq(self.o.valid & self.o.ready),
            beats.o.ready.eq(gone),
            helds.o.ready.eq(gone & last),
        ]
        with m.If(gone):
            m.d.sync += [begun.eq(~last), left.eq(remaining - piece.bytes.count)]
        return m


def _aligned(address: Value, bits: int) -> Value:
    """Return an address with so many of its lowest bits cleared."""
    return Cat(Const(0, bits), address[bits:])
