"""The DMA engine: copies between HBM, SBUF and PSUM, any tensor to any other of as many elements.

    instructions -> checker -+-> walker -> chunker -> reader -> caster -> ring
                             |                                              |
                             +-> walker -> chunker ----------------------> writer
                             +-> row numbers -> both walkers

The two tensors are walked apart: the source's side makes a row of bytes, the destination's side takes it.
"""

from amaranth import Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.dma.answers import Answers
from neuroncore_rtl.hdl.dma.caster import Caster
from neuroncore_rtl.hdl.dma.checker import Checker
from neuroncore_rtl.hdl.dma.chunker import Chunker
from neuroncore_rtl.hdl.dma.counters import DmaCounters
from neuroncore_rtl.hdl.dma.instruction import DmaInstruction, Memory
from neuroncore_rtl.hdl.dma.job import Job
from neuroncore_rtl.hdl.dma.reader import Reader
from neuroncore_rtl.hdl.dma.ring import ByteRing
from neuroncore_rtl.hdl.dma.rows import RowReader
from neuroncore_rtl.hdl.dma.walker import Walker
from neuroncore_rtl.hdl.dma.writer import Writer
from neuroncore_rtl.hdl.engine_error import DetailedError
from neuroncore_rtl.hdl.memory.axi import AxiPort, connect_channels
from neuroncore_rtl.hdl.memory.line_arbiter import LineReadArbiter
from neuroncore_rtl.hdl.memory.port import LineRead, LineWrite
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.isa import Cause

__all__ = ["DmaEngine"]


class DmaEngine(wiring.Component):
    """Executes copies (`spec.isa.DmaCopy`) as if one after the other.

    A copy between adjacent bytes moves a beat a cycle, wherever they start. Of elements that are not adjacent, or in
    runs shorter than a beat, one run a cycle is read and one written; of PSUM a word. A cast takes
    `hdl.dma.caster.Caster.LANES` elements a cycle. A copy's reads begin while the one before it still writes, if that
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
        read, write: line ports of the on-chip memories. axi: HBM; its IDs are 0.
        retired: a pulse for each copy, in order, when all of it is written: taken by the memory on chip, answered by
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
                "read": Out(LineRead(size)),
                "write": Out(LineWrite(size)),
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
        m.submodules.checker = checker = Checker(self.config)
        m.submodules.rows = rows = RowReader(size)
        m.submodules.src_walker = src_walker = Walker()
        m.submodules.src_chunker = src_chunker = Chunker(size)
        m.submodules.reader = reader = Reader(size)
        m.submodules.caster = caster = Caster(size)
        m.submodules.ring = ring = ByteRing(size)
        m.submodules.dst_walker = dst_walker = Walker()
        m.submodules.dst_chunker = dst_chunker = Chunker(size)
        m.submodules.writer = writer = Writer(size)
        m.submodules.answers = answers = Answers()
        m.submodules.line = line = LineReadArbiter(size, 2)
        wiring.connect(m, src_walker.o, src_chunker.i)
        wiring.connect(m, src_chunker.o, reader.i)
        wiring.connect(m, reader.o, caster.i)
        wiring.connect(m, caster.o, ring.i)
        wiring.connect(m, dst_walker.o, dst_chunker.i)
        wiring.connect(m, dst_chunker.o, writer.i)
        wiring.connect(m, rows.src, src_walker.rows)
        wiring.connect(m, rows.dst, dst_walker.rows)
        wiring.connect(m, writer.line, wiring.flipped(self.write))
        for name in ("level", "take", "count", "offset", "data"):
            towards, come = (writer, ring) if name in ("level", "data") else (ring, writer)
            m.d.comb += getattr(towards, name).eq(getattr(come, name))
        connect_channels(m, reader.axi, self.axi, "ar", "r")
        connect_channels(m, writer.axi, self.axi, "aw", "w")
        wiring.connect(m, wiring.flipped(self.axi.b), answers.b)
        m.d.comb += [
            answers.burst.eq(writer.burst),
            writer.room.eq(answers.room),
            writer.stop.eq(answers.failed),
        ]
        wiring.connect(m, reader.line, line.requesters[0])
        wiring.connect(m, rows.line, line.requesters[1])
        wiring.connect(m, line.port, wiring.flipped(self.read))

        m.d.comb += [
            checker.i.payload.eq(self.instructions.payload),
            checker.i.valid.eq(self.instructions.valid & ~self.error.valid),
            self.instructions.ready.eq(checker.i.ready & ~self.error.valid),
        ]

        # The source's side takes a job, and leaves it to the destination's side, which may still have the one before.
        job, formats = checker.o.payload, Signal(reader.formats.shape(), reset_less=True)
        waiting, active, number = Signal(), Signal(), Signal(32)
        dst, writing = Signal(Job, reset_less=True), Signal(dst_walker.side.memory.shape(), reset_less=True)
        apart, answered, begin = (Signal(name=name) for name in ("apart", "answered", "begin"))
        m.d.comb += [
            apart.eq(~job.rows.on & (Value.cast(job.src.memory) != Value.cast(writing))),
            answered.eq(answers.idle | (job.src.memory != Memory.HBM)),
            begin.eq(
                checker.o.valid
                & ~(src_walker.busy | src_chunker.busy | waiting | self.error.valid)
                & (~active | apart)  # from what is being written
                & answered
            ),
            checker.o.ready.eq(begin),
            src_walker.load.eq(begin),
            src_walker.side.eq(job.src),
            src_walker.indexed.eq(job.rows.on),
            rows.load.eq(src_walker.load & job.rows.on),
            rows.rows.eq(job.rows),
            reader.formats.eq(formats),
        ]
        with m.If(begin):
            m.d.sync += [waiting.eq(1), dst.eq(job), formats.eq(job.formats)]

        # The destination's side: a copy is over when its last beat has gone on; HBM may still have to answer.
        over, written, ends, finished = (Signal(name=n) for n in ("over", "written", "ends", "finished"))
        lacking, refused, stopped, failed = (Signal(name=name) for name in ("lacking", "refused", "stopped", "failed"))
        indexed, to_hbm = Signal(), Signal()
        m.d.comb += [
            dst_walker.load.eq(waiting & (~active | ends) & ~self.error.valid),
            dst_walker.side.eq(dst.dst),
            dst_walker.indexed.eq(dst.rows.on),
            to_hbm.eq(writing == Memory.HBM),
            over.eq(active & ~dst_walker.busy & ~dst_chunker.busy & writer.free),
            # The bytes that are wanted next are those that HBM answered with an error.
            lacking.eq(reader.o.valid & reader.o.payload.bad & ~caster.busy & dst_chunker.busy & writer.hungry),
            # What was taken before an illegal copy may fail yet.
            refused.eq(checker.error.valid & ~(waiting | active) & answers.idle),
            stopped.eq(over & indexed & rows.failed & answers.idle),
            failed.eq(Mux(answers.failed, answers.quiet, active & lacking & answers.idle) & writer.free),
            answers.close.eq(over & to_hbm & answers.closable & ~(indexed & rows.failed)),
            written.eq(over & ~to_hbm & answers.idle & ~stopped),
            ends.eq(answers.close | written),
            finished.eq(answers.retired | written),
        ]
        with m.If(ends):
            m.d.sync += active.eq(0)
        with m.If(dst_walker.load):
            m.d.sync += [waiting.eq(0), active.eq(1), writing.eq(dst.dst.memory), indexed.eq(dst.rows.on)]
        m.d.sync += [number.eq(number + finished), self.retired.eq(finished)]
        with m.If((refused | stopped | failed) & ~self.error.valid):
            m.d.sync += [
                active.eq(0),
                self.error.valid.eq(1),
                self.error.cause.eq(Mux(refused, checker.error.cause, Mux(stopped, Cause.INDEX, Cause.AXI))),
                self.error.number.eq(number),
                self.error.detail.eq(Mux(stopped, rows.number, 0)),
            ]

        work = Signal()
        m.d.comb += [
            work.eq(checker.busy | src_walker.busy | src_chunker.busy | waiting | active | ~answers.idle),
            self.busy.eq((self.instructions.valid | checker.error.valid | work) & ~self.error.valid),
            # What was asked for is taken after an error, too.
            self.active.eq(self.busy | work | rows.busy | reader.busy | caster.busy | ~writer.free | self.retired),
        ]
        taken = reader.o.valid & reader.o.ready
        for name, amount in {
            "busy": self.busy,
            "read_bytes": Mux(taken, reader.o.payload.bytes.count, 0),
            "write_bytes": Mux(writer.take, writer.count, 0),
            "wait_axi_read": reader.starved,
            "wait_axi_write": (self.axi.aw.valid & ~self.axi.aw.ready) | (self.axi.w.valid & ~self.axi.w.ready),
            "wait_line_read": self.read.valid & ~self.read.ready,
            "wait_line_write": self.write.valid & ~self.write.ready,
        }.items():
            m.d.sync += self.counters[name].eq(self.counters[name] + amount)
        return m
