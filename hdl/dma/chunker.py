"""DMA chunker: splits runs into chunks, each transferred by one line access or one burst."""

from amaranth import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.dma.job import BURST_BEATS, WORD_BYTES, Run, chunk_layout
from neuroncore_rtl.hdl.memory.port import Storage

__all__ = ["Chunker"]


class Chunker(wiring.Component):
    """Issues one chunk per cycle, without a gap between runs; a beat has `size` bytes.

    Ports:
        o: the runs divided into chunks, one cycle after the run. No chunk crosses a multiple of `size` bytes in SBUF,
            of a word in PSUM, or of `BURST_BEATS` beats in HBM.
        busy: a run, or the rest of a run, is in the chunker.
    """

    def __init__(self, size: int):
        self.size = size
        super().__init__(
            {
                "i": In(stream.Signature(Run)),
                "o": Out(stream.Signature(chunk_layout(size))),
                "busy": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        run, chunk = Signal(Run, reset_less=True), self.o.payload
        room, last = Signal.like(chunk.bytes), Signal()
        with m.Switch(run.storage):
            for memory, grid in (
                (Storage.SBUF, self.size),
                (Storage.PSUM, WORD_BYTES),
                (Storage.HBM, BURST_BEATS * self.size),
            ):
                with m.Case(memory):
                    m.d.comb += room.eq(grid - run.address[: (grid - 1).bit_length()])
            with m.Default():
                pass
        m.d.comb += [
            last.eq(run.bytes <= room),
            chunk.storage.eq(run.storage),
            chunk.partition.eq(run.partition),
            chunk.address.eq(run.address),
            chunk.bytes.eq(Mux(last, run.bytes, room)),
            self.o.valid.eq(self.busy),
            self.i.ready.eq(~self.busy | (self.o.ready & last)),
        ]
        with m.If(self.i.ready):
            m.d.sync += [self.busy.eq(self.i.valid), run.eq(self.i.payload)]
        with m.Elif(self.o.ready):
            m.d.sync += [run.address.eq(run.address + room), run.bytes.eq(run.bytes - room)]
        return m
