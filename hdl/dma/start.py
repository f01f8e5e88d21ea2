"""Start of copies: passes each instruction to its DMA engine a fixed time after its issue."""

from amaranth import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.dma.instruction import DmaInstruction
from neuroncore_rtl.hdl.primitives.fifo import Fifo
from neuroncore_rtl.hdl.primitives.pulse_line import PulseLine
from neuroncore_rtl.spec import timing

__all__ = ["CopyStart"]


class CopyStart(wiring.Component):
    """Delay of copies, as the fetch of descriptors takes on NeuronCore-v2; the delays of several copies overlap.

    Arguments:
        cycles: latency, at least 1.

    Ports:
        i: instructions; always accepted, as the queue has at most `timing.QUEUE_RECORDS` in flight.
        o: instructions; valid `cycles` after their acceptance.
    """

    i: In(stream.Signature(DmaInstruction))
    o: Out(stream.Signature(DmaInstruction))

    def __init__(self, cycles: int):
        self.cycles = cycles
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        m.submodules.places = places = Fifo(DmaInstruction, timing.QUEUE_RECORDS)
        m.submodules.line = line = PulseLine(self.cycles)
        wiring.connect(m, wiring.flipped(self.i), places.i)
        due = Signal(range(timing.QUEUE_RECORDS + 1))  # instructions with elapsed delay, before this cycle
        m.d.comb += [
            line.i.eq(self.i.valid & self.i.ready),
            self.o.valid.eq((due != 0) | line.o),
            self.o.payload.eq(places.o.payload),
            places.o.ready.eq(self.o.valid & self.o.ready),
        ]
        m.d.sync += due.eq(due + line.o - places.o.ready)
        return m
