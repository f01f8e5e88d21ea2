"""The DMA engine: copies between HBM, SBUF and PSUM, any tensor to any other of as many elements.

    instructions -> checker -> sequencer -+-> addresses -> chunker -> reader -> caster -> ring
                                          |                                                 |
                                          +-> addresses -> chunker ----------------------> writer
                                          +-> row numbers -> both addresses

The two tensors are walked apart: the source's side makes a row of bytes, the destination's side takes it.
"""

from amaranth import Const, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.dma.address_generator import DmaAddressGenerator
from neuroncore_rtl.hdl.dma.answers import Answers
from neuroncore_rtl.hdl.dma.caster import Caster
from neuroncore_rtl.hdl.dma.checker import DmaChecker
from neuroncore_rtl.hdl.dma.chunker import Chunker
from neuroncore_rtl.hdl.dma.counters import DmaCounters
from neuroncore_rtl.hdl.dma.instruction import DmaInstruction
from neuroncore_rtl.hdl.dma.reader import Reader
from neuroncore_rtl.hdl.dma.ring import ByteRing
from neuroncore_rtl.hdl.dma.rows import RowReader
from neuroncore_rtl.hdl.dma.sequencer import DmaSequencer
from neuroncore_rtl.hdl.dma.writer import HbmWriter
from neuroncore_rtl.hdl.memory.axi import AxiPort, connect_channels
from neuroncore_rtl.hdl.memory.line_arbiter import LineReadArbiter
from neuroncore_rtl.hdl.memory.port import LineRead, LineWrite
from neuroncore_rtl.hdl.primitives.counting import count
from neuroncore_rtl.hdl.primitives.engine_error import DetailedError
from neuroncore_rtl.hdl.primitives.fifo import Fifo
from neuroncore_rtl.spec.config import Config

__all__ = ["DmaEngine"]


class DmaEngine(wiring.Component):
    """Executes copies (`spec.isa.DmaCopy`) as if one after the other.

    A copy between adjacent bytes moves a beat a cycle, wherever they start. Of elements that are not adjacent, or in
    runs shorter than a beat, one run a cycle is read and one written; of PSUM a word. A cast takes
    `config.cast_lanes` elements a cycle. A copy's reads begin while the one before it still writes, if that
    one's destination is in another memory than its source and it needs no row numbers; its writes begin without
    waiting for the answers to those before.

    After an error nothing more is taken or begun. Of a copy that HBM does not deliver, all that comes before the bad
    beat is written, but for the beat or burst that it leaves unfinished; of one whose row number is beyond its limit,
    the rows before. When HBM refuses what is written, the bursts that it has been given are done, those of the next
    copy included. All that was asked for is taken.

    Arguments:
        config: the machine's parameters.

    Ports:
        instructions: a stream of :data:`DmaInstruction`.
        read, write: line ports of the on-chip memories. written: at the end of this cycle all that `write` has given
            away is in the memories. axi: HBM; its IDs are 0.
        retired: a pulse for each copy, in order, when all of it is written: in the memory on chip, or answered by
            HBM.
        error: :class:`DetailedError`; stays until reset; the detail is the row number of INDEX, else 0. A rule is
            judged before anything is read.
        busy: a copy waits or is under way.
        active: a register that matters may change at the end of this cycle; else the clock may stand still.
        counters: :class:`DmaCounters`.
    """

    def __init__(self, config: Config):
        self.config = config
        size = config.hbm_bytes
        super().__init__(
            {
                "instructions": In(stream.Signature(DmaInstruction)),
                "read": Out(LineRead(size, config.port_latency)),
                "write": Out(LineWrite(size)),
                "written": In(1, init=1),
                "axi": Out(AxiPort(size, 1)),
                "retired": Out(1),
                "error": Out(DetailedError),
                "busy": Out(1),
                "active": Out(1),
                "counters": Out(DmaCounters),
            }
        )

    def elaborate(self, platform):
        m = Module()
        size = self.config.hbm_bytes
        m.submodules.checker = checker = DmaChecker(self.config)
        m.submodules.sequencer = sequencer = DmaSequencer()
        m.submodules.rows = rows = RowReader(size, self.config.port_latency)
        m.submodules.src_addresses = src_addresses = DmaAddressGenerator()
        m.submodules.src_chunker = src_chunker = Chunker(size)
        m.submodules.reader = reader = Reader(size, self.config.dma_beats, self.config.port_latency)
        m.submodules.caster = caster = Caster(size, self.config.cast_lanes, self.config.cast_latency)
        m.submodules.ring = ring = ByteRing(size)
        m.submodules.dst_addresses = dst_addresses = DmaAddressGenerator()
        m.submodules.dst_chunker = dst_chunker = Chunker(size)
        m.submodules.writer = writer = HbmWriter(size)
        m.submodules.answers = answers = Answers()
        wiring.connect(m, checker.o, sequencer.i)
        src_left = self._connect(m, "src_runs", src_addresses.o, src_chunker.i)
        src_cut = self._connect(m, "src_chunks", src_chunker.o, reader.i)
        pieces_left = self._connect(m, "pieces", reader.o, caster.i)
        cast_left = self._connect(m, "cast", caster.o, ring.i)
        dst_left = self._connect(m, "dst_runs", dst_addresses.o, dst_chunker.i)
        dst_cut = self._connect(m, "dst_chunks", dst_chunker.o, writer.i)
        wiring.connect(m, writer.ring, ring.o)
        wiring.connect(m, rows.src, src_addresses.rows)
        wiring.connect(m, rows.dst, dst_addresses.rows)
        wiring.connect(m, sequencer.answers, answers.copies)
        cast = Signal()  # something has left the caster's input and is not in the ring
        m.d.comb += [
            checker.i.payload.eq(self.instructions.payload),
            checker.i.valid.eq(self.instructions.valid & ~self.error.valid),
            self.instructions.ready.eq(checker.i.ready & ~self.error.valid),
            src_addresses.start.eq(sequencer.src),
            dst_addresses.start.eq(sequencer.dst),
            rows.load.eq(sequencer.src.valid & sequencer.src.indexed),
            rows.rows.eq(checker.o.payload.rows),
            reader.formats.eq(sequencer.formats),
            sequencer.refused.eq(checker.error),
            sequencer.src_busy.eq(src_addresses.busy | src_left | src_chunker.busy | src_cut),
            sequencer.dst_done.eq(
                ~(dst_addresses.busy | dst_left | dst_chunker.busy | dst_cut) & sequencer.writer_free
            ),
            sequencer.writer_free.eq(self._all_written(m, writer)),
            sequencer.undelivered.eq(caster.i.valid & caster.i.payload.bad & ~cast & writer.i.valid & writer.hungry),
            sequencer.row_failed.eq(rows.failed),
            sequencer.row_number.eq(rows.number),
            self.retired.eq(sequencer.retired),
            self.error.eq(sequencer.error),
        ]
        work = Signal()
        m.d.comb += [
            cast.eq(caster.busy | cast_left),
            work.eq(checker.busy | sequencer.src_busy | sequencer.busy | ~answers.copies.idle),
            self.busy.eq((self.instructions.valid | checker.error.valid | work) & ~self.error.valid),
            # What was asked for is taken after an error, too.
            self.active.eq(
                self.busy | work | rows.busy | reader.busy | pieces_left | cast | ~writer.free | self.retired
            ),
        ]
        self._connect_memories(m, reader, rows, writer, answers)
        self._count(m, reader, writer)
        return m

    def _connect(self, m: Module, name: str, source, sink) -> Value:
        """Connect two parts, with `config.port_latency` through two places; return whether anything is there."""
        if not self.config.port_latency:
            wiring.connect(m, source, sink)
            return Const(0)
        m.submodules[name] = places = Fifo(source.payload.shape(), depth=2)
        wiring.connect(m, source, places.i)
        wiring.connect(m, places.o, sink)
        return places.o.valid

    def _all_written(self, m: Module, writer: HbmWriter) -> Value:
        """Return whether all beats are in the memories, or in their bursts."""
        if not self.config.port_latency:
            return writer.free & self.written
        written = Signal(init=1)
        m.d.sync += written.eq(self.written)
        return writer.idle & written

    def _connect_memories(
        self, m: Module, reader: Reader, rows: RowReader, writer: HbmWriter, answers: Answers
    ) -> None:
        """Connect those who read and write to the memories."""
        m.submodules.line = line = LineReadArbiter(self.config.hbm_bytes, 2)
        wiring.connect(m, reader.line, line.requesters[0])
        wiring.connect(m, rows.line, line.requesters[1])
        wiring.connect(m, line.port, wiring.flipped(self.read))
        wiring.connect(m, writer.line, wiring.flipped(self.write))
        if self.config.port_latency:
            m.submodules.ar = ar = Fifo(reader.axi.ar.payload.shape(), depth=1)
            wiring.connect(m, reader.axi.ar, ar.i)
            wiring.connect(m, ar.o, wiring.flipped(self.axi.ar))
            connect_channels(m, reader.axi, self.axi, "r")
        else:
            connect_channels(m, reader.axi, self.axi, "ar", "r")
        connect_channels(m, writer.axi, self.axi, "aw", "w")
        wiring.connect(m, wiring.flipped(self.axi.b), answers.b)
        m.d.comb += [
            answers.burst.eq(writer.burst),
            writer.room.eq(answers.room),
            writer.stop.eq(answers.copies.failed),
        ]

    def _count(self, m: Module, reader: Reader, writer: HbmWriter) -> None:
        count(
            m,
            self.counters,
            busy=self.busy,
            read_bytes=Mux(reader.o.valid & reader.o.ready, reader.o.payload.bytes.count, 0),
            write_bytes=Mux(writer.ring.take, writer.ring.count, 0),
            wait_axi_read=reader.starved,
            wait_axi_write=(self.axi.aw.valid & ~self.axi.aw.ready) | (self.axi.w.valid & ~self.axi.w.ready),
            wait_line_read=self.read.valid & ~self.read.ready,
            wait_line_write=self.write.valid & ~self.write.ready,
        )
