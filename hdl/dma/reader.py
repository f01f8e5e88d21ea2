"""DMA read path: reads the source's chunks from HBM or an on-chip memory into one buffer.

    chunks -+-> AXI bursts, line accesses -> beats -+-> pieces
            +---> offset, bytes, formats -----------+

A request needs reserved room in the buffer, so every beat that arrives is accepted.
"""

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.dma.beats import beat_address, next_beat
from neuroncore_rtl.hdl.dma.job import Formats, chunk_layout, piece_layout
from neuroncore_rtl.hdl.memory.axi import RESPONSE_OKAY, AxiPort
from neuroncore_rtl.hdl.memory.port import LineRead, Storage
from neuroncore_rtl.hdl.primitives.fifo import BufferedFifo, Fifo

__all__ = ["Reader"]

_LINE_REQUEST = data.StructLayout(
    {name: LineRead(1).members[name].shape for name in ("storage", "partition", "address", "word")}
)


class Reader(wiring.Component):
    """Issues one line access or burst, and forwards one beat, per cycle.

    Arguments:
        size: bytes per beat.
        room: maximum number of beats outstanding or buffered. Room is reserved per burst: full throughput needs more
            beats than HBM's latency in cycles.
        latency: `port_latency` of the machine: sets the line latency; 1 delays line requests by a cycle.

    Ports:
        formats: element formats of the copy that the chunk belongs to.
        axi: port to HBM; the write channels are not used.
        o: pieces (the bytes of a chunk in one beat), in order.
        starved: HBM beats are outstanding and none is buffered.
        busy: a beat is outstanding or buffered.
    """

    def __init__(self, size: int, room: int, latency: int = 0):
        self.size = size
        self.room = room
        self.latency = latency
        super().__init__(
            {
                "i": In(stream.Signature(chunk_layout(size))),
                "formats": In(Formats),
                "axi": Out(AxiPort(size, 1)),
                "line": Out(LineRead(size, latency)),
                "o": Out(stream.Signature(piece_layout(size))),
                "starved": Out(1),
                "busy": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        place_bits = (self.size - 1).bit_length()
        held = data.StructLayout({"place": place_bits, "bytes": self.i.payload.bytes.shape(), "formats": Formats})
        beat = data.StructLayout({"data": 8 * self.size, "bad": 1})
        self._flight = Signal(self.line.signature.latency)  # one bit per cycle of a line access in flight
        m.submodules.beats = beats = BufferedFifo(beat, self.room)
        m.submodules.held = helds = BufferedFifo(held, self.room)
        self._asking = stream.Signature(_LINE_REQUEST).create(path=("asking",))
        gone = self._offer_pieces(m, beats.o, helds.o)
        asked = stream.Signature(held).create()
        waits = self._connect_line(m)
        owed = self._request(m, asked, gone, waits)
        # A register delays the entry: `line.ready` is late in the cycle, and the entry is used only with its beat.
        for late, now in zip((helds.i.valid, helds.i.payload), (asked.valid, asked.payload), strict=True):
            m.d.sync += late.eq(now)
        self._collect(m, beats.i)
        m.d.comb += self.starved.eq((owed != 0) & ~beats.o.valid)
        return m

    def _connect_line(self, m: Module) -> Value:
        """Connect on-chip requests to the line port; return whether one is pending.

        With `latency`, two entries isolate the port's `ready`, which is late in the cycle.
        """
        asking, line = self._asking, self.line
        request = asking
        if self.latency:
            m.submodules.requests = requests = Fifo(_LINE_REQUEST, depth=2)
            wiring.connect(m, asking, requests.i)
            request = requests.o
        m.d.comb += [
            line.valid.eq(request.valid),
            *(getattr(line, name).eq(request.payload[name]) for name, _ in _LINE_REQUEST),
            request.ready.eq(line.ready),
        ]
        return request.valid if self.latency else Const(0)

    def _request(self, m: Module, held, gone: Signal, waits: Value) -> Signal:
        """Request a chunk if there is room for its beats; return the number of outstanding HBM beats.

        Beats stay in order: requests to HBM stall until all on-chip beats have arrived, and vice versa.
        """
        chunk, asking = self.i.payload, self._asking
        place = chunk.address[: (self.size - 1).bit_length()]
        wanted = Signal(range(self.room + 1))
        free = Signal(range(self.room + 1), init=self.room)
        owed = Signal(range(self.room + 1))
        full, owes = Signal(), Signal()  # no entry is free; HBM beats are outstanding
        from_hbm, room, burst, access = (Signal(name=name) for name in ("from_hbm", "room", "burst", "access"))
        m.d.comb += [
            from_hbm.eq(chunk.storage == Storage.HBM),
            wanted.eq((place + chunk.bytes + (self.size - 1)) >> len(place)),
            room.eq(free >= wanted),
            self.busy.eq(free != self.room),
            self.axi.ar.valid.eq(self.i.valid & from_hbm & room & ~self._flight.any() & ~waits),
            self.axi.ar.payload.addr.eq(beat_address(chunk.address, self.size)),
            self.axi.ar.payload.len.eq(wanted - 1),
            # An on-chip chunk is one beat, so registers suffice for this critical path: `full` and `owes`.
            asking.valid.eq(self.i.valid & ~from_hbm & ~full & ~owes),
            asking.payload.storage.eq(Value.cast(chunk.storage)[:1]),
            asking.payload.partition.eq(chunk.partition),
            asking.payload.address.eq(beat_address(chunk.address, self.size)),
            asking.payload.word.eq(place[2:]),
            burst.eq(self.axi.ar.valid & self.axi.ar.ready),
            access.eq(asking.valid & asking.ready),
            self.i.ready.eq(burst | access),
            held.valid.eq(self.i.ready),
            held.payload.place.eq(place),
            held.payload.bytes.eq(chunk.bytes),
            held.payload.formats.eq(self.formats),
        ]
        with m.If(burst):
            m.d.sync += owes.eq(1)
        with m.Elif(self.axi.r.valid):
            m.d.sync += owes.eq(owed != 1)
        with m.If(self.i.ready | gone):
            m.d.sync += full.eq(self.i.ready & ~gone & (free == wanted))
        # Both sums are computed before the late `i.ready` selects one.
        more = Signal.like(free)
        m.d.comb += more.eq(free + gone)
        m.d.sync += [
            free.eq(Mux(self.i.ready, more - wanted, more)),
            owed.eq(owed + Mux(burst, wanted, 0) - self.axi.r.valid),
        ]
        return owed

    def _collect(self, m: Module, beats) -> None:
        flight, come, answer = self._flight, self.axi.r.valid, self.axi.r.payload
        m.d.sync += flight.eq(Cat(self.line.valid & self.line.ready, flight[:-1]))
        m.d.comb += [
            self.axi.r.ready.eq(1),
            beats.valid.eq(come | flight[-1]),
            beats.payload.data.eq(Mux(come, answer.data, self.line.data)),
            beats.payload.bad.eq(come & (answer.resp != RESPONSE_OKAY)),
        ]

    def _offer_pieces(self, m: Module, beats, held) -> Signal:
        """Offer the pieces of the read beats at `o`; return whether a beat is consumed in this cycle."""
        now, beat, piece = held.payload, beats.payload, self.o.payload
        gone = Signal()
        offset, count, last = next_beat(m, self.size, now.place, now.bytes, gone)
        m.d.comb += [
            self.o.valid.eq(beats.valid & held.valid),
            piece.bytes.data.eq(beat.data),
            piece.bytes.offset.eq(offset),
            piece.bytes.count.eq(count),
            piece.formats.eq(now.formats),
            piece.bad.eq(beat.bad),
            gone.eq(self.o.valid & self.o.ready),
            beats.ready.eq(gone),
            held.ready.eq(gone & last),
        ]
        return gone
