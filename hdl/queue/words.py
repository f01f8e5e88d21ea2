"""Word reader: reads a run of 32-bit words from HBM."""

from amaranth import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.memory.axi import MAX_BEATS, PAGE_BYTES, RESPONSE_OKAY, AxiPort
from neuroncore_rtl.spec.isa import HBM_ADDRESS_BITS

__all__ = ["WordReader"]

WORD_BYTES = 4


class WordReader(wiring.Component):
    """Word reader: issues bursts of maximal length without waiting for their beats, and delivers one word per cycle.

    Arguments:
        size: bytes of a beat of HBM.
        most: largest number of words in a run.

    Ports:
        start: a pulse starts a run; all words of the previous run must have been delivered.
        address: HBM address of the run, valid with `start`; a multiple of `size`.
        count: number of words of the run, valid with `start`; at least 1.
        axi: port for reads of HBM.
        valid, word: the words, in order, without backpressure.
        error: HBM returned an error for this word.
    """

    def __init__(self, size: int, most: int):
        self.size = size
        self.most = most
        super().__init__(
            {
                "start": In(1),
                "address": In(HBM_ADDRESS_BITS),
                "count": In(range(most + 1)),
                "axi": Out(AxiPort(size, 1)),
                "valid": Out(1),
                "word": Out(32),
                "error": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        self._ask(m)
        axi = self.axi
        words_per_beat = self.size // WORD_BYTES
        beat = Signal(8 * self.size, reset_less=True)
        error = Signal(reset_less=True)
        held = Signal(range(words_per_beat + 1))  # remaining words of the beat; the next one is lowest
        left = Signal.like(self.count)  # remaining words of the run
        m.d.comb += [
            axi.r.ready.eq(held <= 1),
            self.valid.eq((held != 0) & (left != 0)),
            self.word.eq(beat),
            self.error.eq(error),
        ]
        with m.If(self.start):
            m.d.sync += [held.eq(0), left.eq(self.count)]
        with m.Else():
            m.d.sync += left.eq(left - self.valid)
            with m.If(axi.r.ready):
                m.d.sync += [
                    held.eq(Mux(axi.r.valid, words_per_beat, 0)),
                    beat.eq(axi.r.payload.data),
                    error.eq(axi.r.payload.resp != RESPONSE_OKAY),
                ]
            with m.Else():
                m.d.sync += [held.eq(held - 1), beat.eq(beat[32:])]
        return m

    def _ask(self, m: Module) -> None:
        axi = self.axi
        page_beats = PAGE_BYTES // self.size
        offset_bits = (self.size - 1).bit_length()
        place = Signal(HBM_ADDRESS_BITS - offset_bits, reset_less=True)  # address of the next beat, in beats
        beats = Signal(range(-(-WORD_BYTES * self.most // self.size) + 1))  # beats not requested yet
        page_rest = Signal(range(page_beats + 1))
        page_burst, burst = (Signal(range(MAX_BEATS + 1), name=name) for name in ("page_burst", "burst"))
        m.d.comb += [
            page_rest.eq(page_beats - place[: page_beats.bit_length() - 1]),
            page_burst.eq(Mux(page_rest > MAX_BEATS, MAX_BEATS, page_rest)),
            burst.eq(Mux(beats > page_burst, page_burst, beats)),
            axi.ar.valid.eq(beats != 0),
            axi.ar.payload.addr.eq(place << offset_bits),
            axi.ar.payload.len.eq(burst - 1),
        ]
        with m.If(self.start):
            m.d.sync += [
                place.eq(self.address[offset_bits:]),
                beats.eq((WORD_BYTES * self.count + self.size - 1)[offset_bits:]),
            ]
        with m.Elif(axi.ar.ready):
            m.d.sync += [place.eq(place + burst), beats.eq(beats - burst)]
