"""A walk over the runs of a tensor: where each of them starts, without a multiplier."""

from amaranth import Array, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.dma.job import Row, Run, Side
from neuroncore_rtl.hdl.memory.port import PARTITION_BITS
from neuroncore_rtl.spec.isa import DMA_DIMENSIONS, HBM_ADDRESS_BITS

__all__ = ["Walker"]

_OUTERMOST = DMA_DIMENSIONS - 1


class Walker(wiring.Component):
    """One run a cycle. Before each row of a gather or scatter it waits until it may go on, and learns where to.

    It knows, for each dimension, where the current row of the dimensions below it starts. A move along a dimension
    starts from there, and starts the rows of the dimensions below anew.

    Ports:
        load: begin the walk over `side`; by rows if `indexed`. Only when not busy.
        rows: for each row of an indexed walk; a bad one ends it.
        o: the runs. busy: there are more of them.
    """

    load: In(1)
    side: In(Side)
    indexed: In(1)
    rows: In(stream.Signature(Row))
    o: Out(stream.Signature(Run))
    busy: Out(1)

    def elaborate(self, platform):
        m = Module()
        place = data.StructLayout({"address": HBM_ADDRESS_BITS, "partition": PARTITION_BITS})
        side, indexed, waiting = Signal(Side, reset_less=True), Signal(), Signal()
        starts = [Signal(place, name=f"start{d}", reset_less=True) for d in range(DMA_DIMENSIONS)]
        index = [Signal(16, name=f"index{d}", reset_less=True) for d in range(DMA_DIMENSIONS)]
        dimension, finished = Signal(range(DMA_DIMENSIONS)), Signal()
        step, start, moved = Signal(32), Signal(place), Signal(place)
        m.d.comb += [
            self.o.valid.eq(self.busy & ~waiting),
            self.o.payload.memory.eq(side.memory),
            self.o.payload.partition.eq(starts[0].partition),
            self.o.payload.address.eq(starts[0].address),
            self.o.payload.bytes.eq(side.bytes),
            self.rows.ready.eq(self.busy & waiting),
            finished.eq(1),
            step.eq(Array(side.step[d].as_unsigned() for d in range(DMA_DIMENSIONS))[dimension]),
            start.eq(Array(starts)[dimension]),
            moved.eq(start),
        ]
        for d in reversed(range(DMA_DIMENSIONS)):
            with m.If(index[d] != side.last[d]):
                m.d.comb += [dimension.eq(d), finished.eq(0)]
        with m.If(dimension == side.axis):
            m.d.comb += moved.partition.eq(start.partition + step[:PARTITION_BITS])
        with m.Else():
            m.d.comb += moved.address.eq(start.address + (step.as_signed() << side.size))

        with m.If(self.load):
            m.d.sync += [side.eq(self.side), indexed.eq(self.indexed), self.busy.eq(1), waiting.eq(self.indexed)]
            for d in range(DMA_DIMENSIONS):
                m.d.sync += [
                    index[d].eq(0),
                    starts[d].address.eq(self.side.address),
                    starts[d].partition.eq(self.side.partition),
                ]
        with m.Elif(self.o.valid & self.o.ready):
            m.d.sync += [self.busy.eq(~finished), waiting.eq(indexed & (dimension == _OUTERMOST))]
            for d in range(DMA_DIMENSIONS):
                with m.If(dimension >= d if d else 1):
                    m.d.sync += [starts[d].eq(moved), index[d].eq(Mux(dimension == d, index[d] + 1, 0))]
        with m.Elif(self.rows.valid & self.rows.ready):
            m.d.sync += [self.busy.eq(~self.rows.payload.bad), waiting.eq(0)]
            for d in range(_OUTERMOST):
                m.d.sync += starts[d].address.eq(starts[_OUTERMOST].address + self.rows.payload.offset)
        return m
