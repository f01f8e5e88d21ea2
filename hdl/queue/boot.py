"""Boot: checks the image's header in HBM and copies the controller's program to its local memory."""

from amaranth import Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.controller.memory import LocalWord
from neuroncore_rtl.hdl.memory.axi import AxiPort
from neuroncore_rtl.hdl.queue.errors import BootError
from neuroncore_rtl.hdl.queue.words import WordReader
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.isa import HBM_ADDRESS_BITS, RECORD_BYTES
from neuroncore_rtl.spec.memory_map import BOOT_WORDS, IMAGE_MAGIC

__all__ = ["Boot"]

WORD_BYTES = 4

SIZE_WORD = 1
"""Header word with the program's size in bytes."""

PROGRAM_WORD = 2
"""Header word with the program's address; the required parameters of the core follow it."""


class Boot(wiring.Component):
    """Boot loader: checks one header word per cycle, then copies one program word per cycle, in bursts.

    Arguments:
        config: the machine's parameters; the header must match them.

    Ports:
        start: a pulse starts the boot; ignored after the first until reset.
        address: HBM address of the image, valid with `start`; bits below RECORD_BYTES are ignored.
        axi: port for reads of HBM.
        load: words for the local memory.
        done: the program is loaded; set until reset.
        error: the header is wrong or HBM returned an error; set until reset, and `done` stays 0. Its detail is the
            index of the first wrong word of BOOT_WORDS, or 0 after an HBM error.
    """

    def __init__(self, config: Config):
        self.config = config
        super().__init__(
            {
                "start": In(1),
                "address": In(HBM_ADDRESS_BITS),
                "axi": Out(AxiPort(config.hbm_bytes, 1)),
                "load": Out(stream.Signature(LocalWord, always_ready=True)),
                "done": Out(1),
                "error": Out(BootError),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.reader = reader = WordReader(self.config.hbm_bytes, self.config.local_bytes // WORD_BYTES)
        wiring.connect(m, reader.axi, wiring.flipped(self.axi))
        image = Signal(HBM_ADDRESS_BITS, reset_less=True)
        program = Signal(32, reset_less=True)  # byte offset from the image
        words = Signal(range(self.config.local_bytes // WORD_BYTES + 1), reset_less=True)  # words of the program
        number = Signal(range(self.config.local_bytes // WORD_BYTES))  # index of the next word
        last, wrong, refused = Signal(), Signal(), Signal()
        m.d.comb += [
            wrong.eq(reader.valid & (reader.error | ~self._is_right(m, number, reader.word))),
            self.load.payload.number.eq(number),
            self.load.payload.data.eq(reader.word),
        ]
        with m.If(reader.valid):
            m.d.sync += number.eq(Mux(last, 0, number + 1))
        with m.FSM():
            with m.State("waiting"):
                m.d.comb += [
                    reader.start.eq(self.start),
                    reader.address.eq(self.address & -RECORD_BYTES),
                    reader.count.eq(BOOT_WORDS),
                ]
                m.d.sync += image.eq(reader.address)
                with m.If(self.start):
                    m.next = "header"
            with m.State("header"):
                m.d.comb += last.eq(number == BOOT_WORDS - 1)
                with m.If(reader.valid):
                    with m.Switch(number):
                        with m.Case(SIZE_WORD):
                            m.d.sync += words.eq(reader.word[WORD_BYTES.bit_length() - 1 :])
                        with m.Case(PROGRAM_WORD):
                            m.d.sync += program.eq(reader.word)
                with m.If(wrong):
                    m.d.sync += refused.eq(1)
                    with m.If(~refused | reader.error):
                        m.d.sync += self.error.detail.eq(Mux(reader.error, 0, number))
                with m.If(reader.valid & last):
                    with m.If(wrong | refused):
                        m.next = "failed"
                    with m.Else():
                        m.next = "between"
            with m.State("between"):
                m.d.comb += [
                    reader.start.eq(words != 0),
                    reader.address.eq(image + program),
                    reader.count.eq(words),
                ]
                m.next = "program"
                with m.If(words == 0):
                    m.next = "done"
            with m.State("program"):
                m.d.comb += [last.eq(number == words - 1), self.load.valid.eq(reader.valid & ~reader.error)]
                with m.If(reader.valid):
                    with m.If(reader.error):
                        m.next = "failed"
                    with m.Elif(last):
                        m.next = "done"
            with m.State("done"):
                m.d.comb += self.done.eq(1)
            with m.State("failed"):
                m.d.comb += self.error.valid.eq(1)
        return m

    def _is_right(self, m: Module, number: Value, word: Value) -> Value:
        config = self.config
        right = Signal()
        with m.Switch(number):
            with m.Case(0):
                m.d.comb += right.eq(word == IMAGE_MAGIC)
            with m.Case(SIZE_WORD):
                m.d.comb += right.eq((word <= config.local_bytes) & ~word[: WORD_BYTES.bit_length() - 1].any())
            with m.Case(PROGRAM_WORD):
                m.d.comb += right.eq(~word[: RECORD_BYTES.bit_length() - 1].any())
            sizes = config.rows, config.columns, config.dma_engines, config.cores
            for place, expected in enumerate(sizes, start=PROGRAM_WORD + 1):
                with m.Case(place):
                    m.d.comb += right.eq(word == expected)
            with m.Default():
                m.d.comb += right.eq(word == 0)
        return right
