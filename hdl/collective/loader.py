"""Collective loader: prefetches segments from HBM as link beats, for the Sender or the ReceivePath.

    ops -+-> AXI bursts -> words -> [convert] -> lines -> [widen] -> beats
         +---> sizes, formats -----------+-----------------+

A word is an HBM beat; a line is as many bytes of memory as a link beat has. A request needs reserved room, so every
word that arrives is accepted.
"""

from amaranth import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.collective.ops import ELEMENTS_BITS, LoadOp, beats_of
from neuroncore_rtl.hdl.collective.width_converter import BYTES_BITS, WidthConverter, byte_beats
from neuroncore_rtl.hdl.dma.job import BURST_BEATS
from neuroncore_rtl.hdl.memory.axi import RESPONSE_OKAY, AxiPort
from neuroncore_rtl.hdl.primitives.fifo import BufferedFifo
from neuroncore_rtl.spec.isa import HBM_ADDRESS_BITS
from neuroncore_rtl.spec.isa.collective import CollectiveType

__all__ = ["OPERATION", "CollectiveLoader"]

OPERATION = data.StructLayout({"zero": 1, "wide": 1, "dtype": 2, "elements": ELEMENTS_BITS})


class CollectiveLoader(wiring.Component):
    """Issues one burst and one beat per cycle if HBM keeps up.

    A raw beat has elements as in memory. A wide beat has BF16 elements as FP32, and so needs only half a line.

    Ports:
        ops: segments to load, in order; each is accepted when its last burst is requested.
        axi: port to HBM with ID 0; the write channels are not used.
        beats: link beats, in the order of the operations; the lanes after a segment's last element are 0.
        idle: the loader holds no operation and no beat; an operation may still be offered at `ops`.
        error: HBM returned an error; stays until reset. Afterwards the beats' data are undefined; as many beats follow
            as without the error.
    """

    OPERATIONS = 32
    """Maximum number of operations with pending beats."""

    LATENCY_BEATS = 112
    """Link beats that may be outstanding at HBM: more than the cycles of HBM's latency, for full throughput."""

    def __init__(self, link_bytes: int, hbm_bytes: int):
        self.link_bytes = link_bytes
        self.hbm_bytes = hbm_bytes
        self.words = BURST_BEATS + self.LATENCY_BEATS * min(link_bytes, hbm_bytes) // hbm_bytes
        super().__init__(
            {
                "ops": In(stream.Signature(LoadOp)),
                "axi": Out(AxiPort(hbm_bytes, 1)),
                "beats": Out(stream.Signature(8 * link_bytes)),
                "idle": Out(1),
                "error": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.words = words = BufferedFifo(8 * self.hbm_bytes, self.words)
        m.submodules.operations = operations = BufferedFifo(OPERATION, self.OPERATIONS)
        m.submodules.sizes = sizes = BufferedFifo(BYTES_BITS, self.OPERATIONS)
        self._request_words(m, words, operations, sizes)
        self._deliver(m, words, operations, sizes)
        m.d.comb += self.idle.eq((operations.level == 0) & ~self.beats.valid)
        return m

    def _request_words(self, m: Module, words, operations, sizes) -> None:
        op, place_bits = self.ops.payload, (self.hbm_bytes - 1).bit_length()
        bf16 = op.dtype == CollectiveType.BF16
        size = Signal(BYTES_BITS)
        begun, last, burst, room = (Signal(name=n) for n in ("begun", "last", "burst", "room"))
        next_word, word = (Signal(HBM_ADDRESS_BITS - place_bits, name=n) for n in ("next_word", "word"))
        most = byte_beats(1 << BYTES_BITS, self.hbm_bytes)
        left, remaining = (Signal(range(most + 1), name=n) for n in ("left", "remaining"))
        to_grid, wanted = (Signal(range(BURST_BEATS + 1), name=n) for n in ("to_grid", "wanted"))
        free = Signal(range(self.words + 1), init=self.words)
        m.d.comb += [
            size.eq(Mux(bf16, op.elements << 1, op.elements << 2)),
            word.eq(Mux(begun, next_word, op.address[place_bits:])),
            remaining.eq(Mux(begun, left, byte_beats(size, self.hbm_bytes))),
            to_grid.eq(BURST_BEATS - (word & (BURST_BEATS - 1))),
            last.eq(remaining <= to_grid),
            wanted.eq(Mux(last, remaining, to_grid)),
            room.eq((free >= wanted) & (begun | operations.i.ready)),
            self.axi.ar.valid.eq(self.ops.valid & ~op.zero & room),
            self.axi.ar.payload.addr.eq(Cat(Const(0, place_bits), word)),
            self.axi.ar.payload.len.eq(wanted - 1),
            burst.eq(self.axi.ar.valid & self.axi.ar.ready),
            self.ops.ready.eq(Mux(op.zero, operations.i.ready, burst & last)),
            operations.i.valid.eq(Mux(op.zero, self.ops.valid, burst & ~begun)),
            operations.i.payload.zero.eq(op.zero),
            operations.i.payload.wide.eq(op.wide & bf16),
            operations.i.payload.dtype.eq(op.dtype),
            operations.i.payload.elements.eq(op.elements),
            sizes.i.valid.eq(burst & ~begun),  # needs no `ready`: at most one size per entry of `operations`
            sizes.i.payload.eq(size),
        ]
        with m.If(burst):
            m.d.sync += [begun.eq(~last), left.eq(remaining - wanted), next_word.eq(word + wanted)]

        gone = words.o.valid & words.o.ready
        m.d.sync += [
            free.eq(free - Mux(burst, wanted, 0) + gone),
            self.error.eq(self.error | (self.axi.r.valid & (self.axi.r.payload.resp != RESPONSE_OKAY))),
        ]
        m.d.comb += [
            self.axi.r.ready.eq(1),
            words.i.valid.eq(self.axi.r.valid),
            words.i.payload.eq(self.axi.r.payload.data),
        ]

    def _deliver(self, m: Module, words, operations, sizes) -> None:
        """Convert HBM words to link beats. The width converter may already hold words of the next operation."""
        m.submodules.converter = converter = WidthConverter(self.hbm_bytes, self.link_bytes)
        wiring.connect(m, words.o, converter.i)
        bits, op = 8 * self.link_bytes, operations.o.payload
        bf16 = op.dtype == CollectiveType.BF16
        line = converter.o.payload.data
        makes, advance, last = (Signal(name=name) for name in ("makes", "advance", "last_beat"))
        index = Signal(ELEMENTS_BITS)
        above = Signal()  # the next beat is the upper half of a consumed line
        upper = Signal(bits // 2, reset_less=True)
        beats = beats_of(m, "beats_of_op", op.elements, op.dtype, op.wide, self.link_bytes)
        m.d.comb += [
            converter.bytes.eq(sizes.o.payload),
            sizes.o.ready.eq(converter.o.valid & converter.o.ready & converter.o.payload.last),
            advance.eq(~self.beats.valid | self.beats.ready),
            makes.eq(advance & operations.o.valid & (op.zero | above | converter.o.valid)),
            last.eq(index == beats - 1),
            converter.o.ready.eq(advance & operations.o.valid & ~op.zero & ~above),
            operations.o.ready.eq(makes & last),
        ]
        with m.If(makes):
            m.d.sync += [index.eq(Mux(last, 0, index + 1)), above.eq(op.wide & ~op.zero & ~above & ~last)]
        with m.If(makes & ~above):
            m.d.sync += upper.eq(line[bits // 2 :])

        half = Mux(above, upper, line[: bits // 2])
        widened = Cat(Cat(Const(0, 16), half[n : n + 16]) for n in range(0, bits // 2, 16))
        # `tail`: filled 16-bit units of the last beat; 0 means all.
        units = bits // 16
        tail = Signal(range(units))
        within = Signal(units)
        m.d.comb += [
            tail.eq(Mux(bf16 & ~op.wide, op.elements, op.elements << 1)),
            within.eq(~(Const(-1, units) << tail)[:units] | (~last | (tail == 0)).replicate(units)),
        ]
        masked = Mux(op.wide, widened, line) & Cat(bit.replicate(16) for bit in within)
        with m.If(advance):
            m.d.sync += self.beats.valid.eq(makes)
        with m.If(makes):
            m.d.sync += self.beats.payload.eq(Mux(op.zero, 0, masked))
