"""DMA engine: copies any tensor in HBM, SBUF or PSUM to any other with as many elements.

    instructions -> checker -> sequencer -+-> addresses -> chunker -> reader -> caster -> ring
                                          |                                                 |
                                          +-> addresses -> chunker ----------------------> writer
                                          +-> row numbers -> both addresses

The source side produces a stream of bytes; the destination side consumes it. Each walks over its own tensor.
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
from neuroncore_rtl.hdl.dma.turns import PacketGate
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
    """Executes copies (`spec.isa.DmaCopy`) with the results of sequential execution.

    Throughput per cycle: one beat between adjacent bytes, at any alignment; one run where elements are not adjacent or
    runs are shorter than a beat; one word of PSUM; `config.cast_lanes` elements of a cast.

    Copy n + 1 reads while copy n writes, if it reads another memory and has no row numbers. Writes never wait for the
    responses to earlier writes.

    After an error no copy begins; outstanding reads are still received. Bytes written in spite of an error:

    - HBM read error: all beats before the bad one, except an unfinished beat or burst.
    - Row number beyond its limit: the rows before it.
    - HBM write error: all bursts issued, including those of the next copy.

    Ports:
        written: writes accepted at `write` are in memory at the end of this cycle.
        axi: port to HBM; all IDs are 0.
        retired: pulse for each copy, in order, once all of its writes are in the on-chip memory or answered by HBM.
        error: `DetailedError`; stays until reset. Detail: row number for INDEX, else 0. Rules are checked before any
            read.
        busy: a copy is pending or in flight.
        active: the state of the engine may change at the end of this cycle; otherwise the clock may stop.
        requests, turns: a packet of HBM can begin, and begins; bit 0 of the source, bit 1 of the destination. Only with
            `config.packet_interval`.
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
            | ({"requests": Out(2), "turns": In(2)} if config.packet_interval else {})
        )

    def elaborate(self, platform):
        m = Module()
        size, packets = self.config.hbm_bytes, self.config.packet_interval > 0
        m.submodules.checker = checker = DmaChecker(self.config)
        m.submodules.sequencer = sequencer = DmaSequencer()
        m.submodules.rows = rows = RowReader(size, self.config.port_latency)
        m.submodules.src_addresses = src_addresses = DmaAddressGenerator(packets)
        m.submodules.src_chunker = src_chunker = Chunker(size)
        m.submodules.reader = reader = Reader(size, self.config.dma_beats, self.config.port_latency)
        m.submodules.caster = caster = Caster(size, self.config.cast_lanes, self.config.cast_latency)
        m.submodules.ring = ring = ByteRing(size)
        m.submodules.dst_addresses = dst_addresses = DmaAddressGenerator(packets)
        m.submodules.dst_chunker = dst_chunker = Chunker(size)
        m.submodules.writer = writer = HbmWriter(size)
        m.submodules.answers = answers = Answers()
        wiring.connect(m, checker.o, sequencer.i)
        src_left = self._connect(m, "src_runs", self._in_turn(m, 0, src_addresses), src_chunker.i)
        src_cut = self._connect(m, "src_chunks", src_chunker.o, reader.i)
        pieces_left = self._connect(m, "pieces", reader.o, caster.i)
        cast_left = self._connect(m, "cast", caster.o, ring.i)
        dst_left = self._connect(m, "dst_runs", self._in_turn(m, 1, dst_addresses), dst_chunker.i)
        dst_cut = self._connect(m, "dst_chunks", dst_chunker.o, writer.i)
        wiring.connect(m, writer.ring, ring.o)
        wiring.connect(m, rows.src, src_addresses.rows)
        wiring.connect(m, rows.dst, dst_addresses.rows)
        wiring.connect(m, sequencer.answers, answers.copies)
        cast = Signal()  # the caster holds an element that has not reached the ring
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
            # Outstanding reads are received after an error, too.
            self.active.eq(
                self.busy | work | rows.busy | reader.busy | pieces_left | cast | ~writer.free | self.retired
            ),
        ]
        self._connect_memories(m, reader, rows, writer, answers)
        self._count(m, reader, writer)
        return m

    def _in_turn(self, m: Module, side: int, generator: DmaAddressGenerator):
        """Return the stream of runs; in HBM the first one of a packet waits for its turn."""
        if not self.config.packet_interval:
            return generator.o
        m.submodules[f"gate{side}"] = gate = PacketGate()
        wiring.connect(m, generator.o, gate.i)
        m.d.comb += [
            gate.first.eq(generator.first),
            self.requests[side].eq(gate.request),
            gate.turn.eq(self.turns[side]),
        ]
        return gate.o

    def _connect(self, m: Module, name: str, source, sink) -> Value:
        """Connect two units, with `config.port_latency` through a two-entry FIFO.

        Return whether that FIFO holds an entry.
        """
        if not self.config.port_latency:
            wiring.connect(m, source, sink)
            return Const(0)
        m.submodules[name] = places = Fifo(source.payload.shape(), depth=2)
        wiring.connect(m, source, places.i)
        wiring.connect(m, places.o, sink)
        return places.o.valid

    def _all_written(self, m: Module, writer: HbmWriter) -> Value:
        """Return whether all accepted beats are written to on-chip memory, or are part of a burst to HBM."""
        if not self.config.port_latency:
            return writer.free & self.written
        written = Signal(init=1)
        m.d.sync += written.eq(self.written)
        return writer.idle & written

    def _connect_memories(
        self, m: Module, reader: Reader, rows: RowReader, writer: HbmWriter, answers: Answers
    ) -> None:
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
