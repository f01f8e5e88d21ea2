"""Collective storer: writes received segments to HBM.

    ops ----> address, bytes --+
                               +-> [burst, ...] -> AXI
    beats --> [convert] words -+

A word is an HBM beat. A burst's address is issued when all of its words are buffered, so a slow network never blocks a
shared HBM port.
"""

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.collective.ops import StoreOp
from neuroncore_rtl.hdl.collective.width_converter import WidthConverter
from neuroncore_rtl.hdl.dma.job import BURST_BEATS
from neuroncore_rtl.hdl.memory.axi import RESPONSE_OKAY, AxiPort
from neuroncore_rtl.hdl.primitives.fifo import BufferedFifo
from neuroncore_rtl.spec.isa import HBM_ADDRESS_BITS
from neuroncore_rtl.spec.isa.collective import CollectiveType

__all__ = ["Storer"]


class Storer(wiring.Component):
    """Stores one beat per cycle, or one word if a beat has several; no gap between operations.

    Ports:
        ops: segments to store, in order.
        beats: beats of the accepted operations; BF16 is not extended to FP32.
        axi: port to HBM with ID 0; the read channels are not used.
        quiet: HBM has answered the writes of all accepted operations.
        error: HBM returned an error; stays until reset.
    """

    OPERATIONS = 8
    """Maximum number of operations with outstanding beats."""

    WORDS = 2 * BURST_BEATS
    """Maximum number of words buffered for incomplete or unsent bursts."""

    BURSTS = 128
    """Maximum number of unanswered bursts."""

    def __init__(self, link_bytes: int, hbm_bytes: int):
        self.link_bytes = link_bytes
        self.hbm_bytes = hbm_bytes
        super().__init__(
            {
                "ops": In(stream.Signature(StoreOp)),
                "beats": In(stream.Signature(8 * link_bytes)),
                "axi": Out(AxiPort(hbm_bytes, 1)),
                "quiet": Out(1),
                "error": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        place_bits = (self.hbm_bytes - 1).bit_length()
        entry = data.StructLayout({"data": 8 * self.hbm_bytes, "strobes": self.hbm_bytes, "last": 1})
        address = data.StructLayout({"word": HBM_ADDRESS_BITS - place_bits, "len": 8})
        m.submodules.words = words = BufferedFifo(entry, self.WORDS)
        m.submodules.addresses = addresses = BufferedFifo(address, self.WORDS)
        missing = Signal(range(self.BURSTS + 1))  # unanswered bursts
        idle = self._collect(m, words.i, addresses.i, missing != self.BURSTS)
        self._write(m, words.o, addresses.o, addresses.i.valid)
        m.d.comb += [self.axi.b.ready.eq(1), self.quiet.eq(idle & (missing == 0))]
        m.d.sync += [
            missing.eq(missing + addresses.i.valid - self.axi.b.valid),
            self.error.eq(self.error | (self.axi.b.valid & (self.axi.b.payload.resp != RESPONSE_OKAY))),
        ]
        return m

    def _collect(self, m: Module, words, addresses, room: Value) -> Value:
        """Queue the words, and each burst's address with its last word; return whether no operation is pending.

        A burst ends with its operation, or before a multiple of the largest burst.
        """
        size, place_bits = self.hbm_bytes, (self.hbm_bytes - 1).bit_length()
        m.submodules.operations = operations = BufferedFifo(StoreOp, self.OPERATIONS)
        m.submodules.converter = converter = WidthConverter(self.link_bytes, size)
        wiring.connect(m, wiring.flipped(self.ops), operations.i)
        op, comes = operations.o.payload, operations.o.valid
        begun = Signal()  # the next word is not the first of its operation
        within = Signal()  # the next word is not the first of its burst
        next_word, word, first, start = (
            Signal(HBM_ADDRESS_BITS - place_bits, name=n) for n in ("next_word", "word", "first", "start")
        )
        takes, ends, last = (Signal(name=name) for name in ("takes", "ends", "last"))
        m.d.comb += [
            converter.i.payload.eq(self.beats.payload),
            converter.i.valid.eq(self.beats.valid & comes),
            self.beats.ready.eq(converter.i.ready & comes),
            converter.bytes.eq(Mux(op.dtype == CollectiveType.BF16, op.elements << 1, op.elements << 2)),
            converter.o.ready.eq(words.ready & addresses.ready & room),
            takes.eq(converter.o.valid & converter.o.ready),
            last.eq(converter.o.payload.last),
            operations.o.ready.eq(takes & last),
            word.eq(Mux(begun, next_word, op.address[place_bits:])),
            start.eq(Mux(within, first, word)),
            ends.eq(last | ((word & (BURST_BEATS - 1)) == BURST_BEATS - 1)),
            words.valid.eq(takes),
            words.payload.data.eq(converter.o.payload.data),
            words.payload.strobes.eq(self._strobes(m, converter.bytes, last)),
            words.payload.last.eq(ends),
            addresses.valid.eq(takes & ends),
            addresses.payload.word.eq(start),
            addresses.payload.len.eq(word - start),
        ]
        with m.If(takes):
            m.d.sync += [begun.eq(~last), within.eq(~ends), next_word.eq(word + 1), first.eq(start)]
        return operations.level == 0

    def _strobes(self, m: Module, count: Value, last: Signal) -> Value:
        """Return the byte strobes of a word: all bytes, but in an operation's last word only the remaining bytes."""
        size = self.hbm_bytes
        tail = Signal((size - 1).bit_length())
        m.d.comb += tail.eq(count)
        return ~(Const(-1, size) << tail)[:size] | (~last | (tail == 0)).replicate(size)

    def _write(self, m: Module, words, addresses, comes: Signal) -> None:
        """Send the completely buffered bursts to HBM; `comes`: one more burst is complete after this cycle."""
        complete, sent = Signal(range(self.WORDS + 1)), Signal()
        m.d.comb += [
            self.axi.aw.valid.eq(addresses.valid),
            self.axi.aw.payload.addr.eq(Cat(Const(0, (self.hbm_bytes - 1).bit_length()), addresses.payload.word)),
            self.axi.aw.payload.len.eq(addresses.payload.len),
            addresses.ready.eq(self.axi.aw.ready),
            self.axi.w.valid.eq(words.valid & (complete != 0)),
            self.axi.w.payload.data.eq(words.payload.data),
            self.axi.w.payload.strb.eq(words.payload.strobes),
            self.axi.w.payload.last.eq(words.payload.last),
            words.ready.eq(self.axi.w.valid & self.axi.w.ready),
            sent.eq(words.ready & words.payload.last),
        ]
        m.d.sync += complete.eq(complete + comes - sent)
