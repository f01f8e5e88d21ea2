"""Reads the chunks of a copy's source, from HBM or on chip, into one buffer.

    chunks -+-> AXI bursts, line accesses -> beats -+-> pieces
            +---> what the beats hold of it --------+

Nothing is asked for without room in the buffer, so what comes is taken at once.
"""

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.dma.instruction import Memory
from neuroncore_rtl.hdl.dma.job import Formats, chunk_layout, piece_layout
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
        starved: HBM owes beats, and there is none.
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
            }
        )

    def elaborate(self, platform):
        m = Module()
        size, chunk = self.size, self.i.payload
        place_bits = (size - 1).bit_length()
        held = data.StructLayout({"place": place_bits, "bytes": chunk.bytes.shape(), "formats": Formats})
        beat = data.StructLayout({"data": 8 * size, "bad": 1})
        m.submodules.beats = beats = SyncFIFOBuffered(width=beat.size, depth=self.BUFFER_BEATS)
        m.submodules.held = helds = SyncFIFOBuffered(width=held.size, depth=self.BUFFER_BEATS)

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
            self.axi.arvalid.eq(self.i.valid & from_hbm & room & ~flight.any()),
            self.axi.araddr.eq(_aligned(chunk.address, place_bits)),
            self.axi.arlen.eq(wanted - 1),
            self.line.valid.eq(self.i.valid & ~from_hbm & room & (owed == 0)),
            self.line.storage.eq(Value.cast(chunk.memory)[:1]),
            self.line.partition.eq(chunk.partition),
            self.line.address.eq(_aligned(chunk.address, place_bits)),
            self.line.word.eq(place[2:]),
            burst.eq(self.axi.arvalid & self.axi.arready),
            access.eq(self.line.valid & self.line.ready),
            self.i.ready.eq(burst | access),
            helds.w_en.eq(self.i.ready),
            helds.w_data.eq(Cat(place, chunk.bytes, self.formats)),
        ]
        m.d.sync += [
            flight.eq(Cat(access, flight[:-1])),
            free.eq(free - Mux(self.i.ready, wanted, 0) + gone),
            owed.eq(owed + Mux(burst, wanted, 0) - come),
        ]

        # Beats that come.
        m.d.comb += [
            self.axi.rready.eq(1),
            come.eq(self.axi.rvalid),
            beats.w_en.eq(come | flight[-1]),
            beats.w_data.eq(
                Mux(come, Cat(self.axi.rdata, self.axi.rresp != RESPONSE_OKAY), Cat(self.line.data, Const(0, 1)))
            ),
            self.starved.eq((owed != 0) & ~beats.r_rdy),
        ]

        # Pieces.
        now, piece = data.View(held, helds.r_data), self.o.payload
        word = data.View(beat, beats.r_data)
        begun, left, remaining = Signal(), Signal.like(now.bytes, reset_less=True), Signal.like(now.bytes)
        last, ends = Signal(), Signal(range(size + 1))
        m.d.comb += [
            self.o.valid.eq(beats.r_rdy & helds.r_rdy),
            piece.bytes.data.eq(word.data),
            piece.bytes.offset.eq(Mux(begun, 0, now.place)),
            ends.eq(size - piece.bytes.offset),
            remaining.eq(Mux(begun, left, now.bytes)),
            last.eq(remaining <= ends),
            piece.bytes.count.eq(Mux(last, remaining, ends)),
            piece.formats.eq(now.formats),
            piece.bad.eq(word.bad),
            gone.eq(self.o.valid & self.o.ready),
            beats.r_en.eq(gone),
            helds.r_en.eq(gone & last),
        ]
        with m.If(gone):
            m.d.sync += [begun.eq(~last), left.eq(remaining - piece.bytes.count)]
        return m


def _aligned(address: Value, bits: int) -> Value:
    """Return an address with so many of its lowest bits cleared."""
    return Cat(Const(0, bits), address[bits:])
