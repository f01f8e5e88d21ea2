"""Writes what a channel has received to HBM.

    ops ----> where, how much -+
                               +-> [burst, ...] -> AXI
    beats --> [regroup] words -+

A word is what HBM takes in a cycle. A burst's address is not given before all of its words are there: a port to HBM
that others use does not wait for the network.
"""

from amaranth import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.collective.ops import StoreOp
from neuroncore_rtl.hdl.collective.regroup import Regroup
from neuroncore_rtl.hdl.dma.job import BURST_BEATS
from neuroncore_rtl.hdl.fifo import BufferedFifo
from neuroncore_rtl.hdl.memory.axi import RESPONSE_OKAY, AxiPort
from neuroncore_rtl.spec.isa import HBM_ADDRESS_BITS
from neuroncore_rtl.spec.isa.collective import CollectiveType

__all__ = ["Storer"]


class Storer(wiring.Component):
    """A beat a cycle, or a word, where several of them make a beat; no gap between operations.

    Arguments:
        link_bytes: of a beat, 8 to 64. hbm_bytes: of a word, 8 to 64.

    Ports:
        ops: what to store, in order. beats: raw ones, for the operations that were taken.
        axi: of HBM, with ID 0; its read channels are idle.
        quiet: all that was taken is written, and HBM has answered.
        error: an answer of HBM was an error; stays until reset.
    """

    OPERATIONS = 8
    """Operations whose beats have not all come."""

    WORDS = 2 * BURST_BEATS
    """Words that wait for the rest of their burst, or to be taken."""

    BURSTS = 128
    """Bursts that are not yet answered."""

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
        size, place_bits = self.hbm_bytes, (self.hbm_bytes - 1).bit_length()
        entry = data.StructLayout({"data": 8 * size, "strobes": size, "last": 1})
        address = data.StructLayout({"word": HBM_ADDRESS_BITS - place_bits, "len": 8})
        m.submodules.regroup = regroup = Regroup(self.link_bytes, size)
        m.submodules.operations = operations = BufferedFifo(StoreOp, self.OPERATIONS)
        m.submodules.words = words = BufferedFifo(entry, self.WORDS)
        m.submodules.addresses = addresses = BufferedFifo(address, self.WORDS)

        wiring.connect(m, wiring.flipped(self.ops), operations.i)
        wiring.connect(m, wiring.flipped(self.beats), regroup.i)

        # Words, and where they go.
        op = operations.o.payload
        begun = Signal()  # an operation
        within = Signal()  # a burst
        next_word, word, first, start = (
            Signal(HBM_ADDRESS_BITS - place_bits, name=n) for n in ("next_word", "word", "first", "start")
        )
        takes, ends, room, last = (Signal(name=name) for name in ("takes", "ends", "room", "last"))
        tail = Signal(place_bits)
        m.d.comb += [
            regroup.valid.eq(operations.o.valid),
            regroup.bytes.eq(Mux(op.dtype == CollectiveType.BF16, op.elements << 1, op.elements << 2)),
            regroup.o.ready.eq(words.i.ready & addresses.i.ready & room),
            takes.eq(regroup.o.valid & regroup.o.ready),
            last.eq(regroup.o.payload.last),
            operations.o.ready.eq(takes & last),
            word.eq(Mux(begun, next_word, op.address[place_bits:])),
            start.eq(Mux(within, first, word)),
            ends.eq(last | ((word & (BURST_BEATS - 1)) == BURST_BEATS - 1)),
            tail.eq(regroup.bytes),
            words.i.valid.eq(takes),
            words.i.payload.data.eq(regroup.o.payload.data),
            words.i.payload.strobes.eq(~(Const(-1, size) << tail)[:size] | (~last | (tail == 0)).replicate(size)),
            words.i.payload.last.eq(ends),
            addresses.i.valid.eq(takes & ends),
            addresses.i.payload.word.eq(start),
            addresses.i.payload.len.eq(word - start),
        ]
        with m.If(takes):
            m.d.sync += [begun.eq(~last), within.eq(~ends), next_word.eq(word + 1), first.eq(start)]

        # Bursts.
        word_out, address_out = words.o.payload, addresses.o.payload
        complete = Signal(range(self.WORDS + 1))
        sent = Signal()
        m.d.comb += [
            self.axi.aw.valid.eq(addresses.o.valid),
            self.axi.aw.payload.addr.eq(Cat(Const(0, place_bits), address_out.word)),
            self.axi.aw.payload.len.eq(address_out.len),
            addresses.o.ready.eq(self.axi.aw.ready),
            self.axi.w.valid.eq(words.o.valid & (complete != 0)),
            self.axi.w.payload.data.eq(word_out.data),
            self.axi.w.payload.strb.eq(word_out.strobes),
            self.axi.w.payload.last.eq(word_out.last),
            words.o.ready.eq(self.axi.w.valid & self.axi.w.ready),
            sent.eq(words.o.ready & word_out.last),
        ]
        m.d.sync += complete.eq(complete + addresses.i.valid - sent)

        # Answers.
        missing = Signal(range(self.BURSTS + 1))
        m.d.comb += [
            self.axi.b.ready.eq(1),
            room.eq(missing != self.BURSTS),
            self.quiet.eq((operations.level == 0) & (missing == 0)),
        ]
        m.d.sync += [
            missing.eq(missing + addresses.i.valid - self.axi.b.valid),
            self.error.eq(self.error | (self.axi.b.valid & (self.axi.b.payload.resp != RESPONSE_OKAY))),
        ]
        return m
