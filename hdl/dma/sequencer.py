"""DMA sequencer: starts copies on the source and the destination side, retires them, and reports errors."""

from amaranth import Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.dma.answers import CopyAnswers
from neuroncore_rtl.hdl.dma.job import DmaJobLayout, Formats, Start
from neuroncore_rtl.hdl.memory.port import Storage
from neuroncore_rtl.hdl.primitives.engine_error import DetailedError, EngineError
from neuroncore_rtl.spec.isa import Cause

__all__ = ["DmaSequencer"]


class DmaSequencer(wiring.Component):
    """Holds one copy per side: the destination side may still write a copy while the source side reads the next.

    Copy n + 1 starts on the source side when copy n is over. It starts as soon as copy n is on the destination side, if
    copy n writes another memory than copy n + 1 reads, and copy n + 1 has no row numbers. A copy that reads HBM also
    waits for all write responses.

    Ports:
        i: legal copies.
        refused: the copy that the checker refused, after all legal copies of `i`.
        formats: formats of the copy that is being read.
        src_busy: runs or chunks of the source tensor remain to be read.
        dst_done: no run or chunk of the destination remains, and the last beat is in the on-chip memory or its burst;
            HBM responses may be outstanding.
        writer_free: no beat waits to be issued or to reach the on-chip memory.
        undelivered: the next bytes to write are missing, because reading them from HBM failed.
        retired, error: see `DmaEngine`; one cycle after the copy has ended.
        busy: a copy is being read or written.
    """

    i: In(stream.Signature(DmaJobLayout))
    refused: In(EngineError)
    src: Out(Start)
    dst: Out(Start)
    formats: Out(Formats)
    src_busy: In(1)
    dst_done: In(1)
    writer_free: In(1)
    undelivered: In(1)
    row_failed: In(1)
    row_number: In(32)
    answers: Out(CopyAnswers())
    retired: Out(1)
    error: Out(DetailedError)
    busy: Out(1)

    def elaborate(self, platform):
        m = Module()
        waiting, job = Signal(), Signal(DmaJobLayout, reset_less=True)  # started on the source side only
        # State of the copy on the destination side.
        active, memory, indexed = Signal(), Signal(job.dst.storage.shape(), reset_less=True), Signal()
        over, ends = Signal(), Signal()
        formats = Signal(Formats, reset_less=True)
        m.d.comb += [
            over.eq(active & self.dst_done),
            self.formats.eq(formats),
            self.busy.eq(waiting | active),
        ]
        with m.If(self._begin_source(m, waiting, active, memory)):
            m.d.sync += [waiting.eq(1), job.eq(self.i.payload), formats.eq(self.i.payload.formats)]
        with m.If(ends):
            m.d.sync += active.eq(0)
        with m.If(self._begin_destination(m, job, waiting & (~active | ends))):
            m.d.sync += [waiting.eq(0), active.eq(1), memory.eq(job.dst.storage), indexed.eq(job.rows.on)]

        number = Signal(32)  # count of retired copies
        refused, failed = Signal(), Signal()
        stopped = self._retire(m, over, memory, indexed, ends, number)
        undelivered = active & self.undelivered & self.answers.idle
        m.d.comb += [
            # Copies accepted before an illegal one may still fail.
            refused.eq(self.refused.valid & ~(waiting | active) & self.answers.idle),
            failed.eq(Mux(self.answers.failed, self.answers.quiet, undelivered) & self.writer_free),
        ]
        with m.If((refused | stopped | failed) & ~self.error.valid):
            m.d.sync += [
                active.eq(0),
                self.error.valid.eq(1),
                self.error.cause.eq(Mux(refused, self.refused.cause, Mux(stopped, Cause.INDEX, Cause.AXI))),
                self.error.number.eq(number),
                self.error.detail.eq(Mux(stopped, self.row_number, 0)),
            ]
        return m

    def _begin_source(self, m: Module, waiting: Signal, active: Signal, written: Signal) -> Signal:
        """Start to read the next copy if the state allows it; return whether it starts in this cycle."""
        job = self.i.payload
        apart, answered, begins = Signal(), Signal(), Signal()
        m.d.comb += [
            apart.eq(~job.rows.on & (Value.cast(job.src.storage) != Value.cast(written))),
            answered.eq(self.answers.idle | (job.src.storage != Storage.HBM)),
            begins.eq(self.i.valid & ~(self.src_busy | waiting | self.error.valid) & (~active | apart) & answered),
            self.i.ready.eq(begins),
            self.src.valid.eq(begins),
            self.src.side.eq(job.src),
            self.src.indexed.eq(job.rows.on),
        ]
        return begins

    def _begin_destination(self, m: Module, job, ready: Value) -> Signal:
        m.d.comb += [
            self.dst.valid.eq(ready & ~self.error.valid),
            self.dst.side.eq(job.dst),
            self.dst.indexed.eq(job.rows.on),
        ]
        return self.dst.valid

    def _retire(self, m: Module, over: Signal, memory, indexed: Signal, ends: Signal, number: Signal) -> Signal:
        """Retire completed copies; a copy to HBM is complete once HBM has answered.

        Return whether a bad row number has stopped a copy.
        """
        to_hbm, written, finished, stopped = (Signal(name=n) for n in ("to_hbm", "written", "finished", "stopped"))
        m.d.comb += [
            to_hbm.eq(memory == Storage.HBM),
            stopped.eq(over & indexed & self.row_failed & self.answers.idle),
            self.answers.close.eq(over & to_hbm & self.answers.closable & ~(indexed & self.row_failed)),
            written.eq(over & ~to_hbm & self.answers.idle & ~stopped),
            ends.eq(self.answers.close | written),
            finished.eq(self.answers.retired | written),
        ]
        m.d.sync += [number.eq(number + finished), self.retired.eq(finished)]
        return stopped
