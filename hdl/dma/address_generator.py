"""Address generator of a DMA tensor: the start of each run, without a multiplier."""

from amaranth import Array, Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.dma.job import JobRow, Run, Side, Start
from neuroncore_rtl.hdl.memory.port import PARTITION_BITS
from neuroncore_rtl.spec.isa import DMA_DIMENSIONS, HBM_ADDRESS_BITS

__all__ = ["DmaAddressGenerator"]

_OUTERMOST = DMA_DIMENSIONS - 1


class DmaAddressGenerator(wiring.Component):
    """Walks over a tensor and issues one run per cycle.

    Each dimension has a register with the start of its current row. A step along a dimension adds the dimension's step
    to its register, and loads the registers of the inner dimensions with the sum.

    Before each row of a gather or scatter it stalls until `rows` delivers the row's offset or skips it.

    Arguments:
        packets: whether to mark first runs, for `hdl.dma.turns`.

    Ports:
        start: begins to generate the runs of a tensor; only when not `busy`.
        rows: one `JobRow` per row of an indexed tensor; after a row marked bad, no more runs are generated.
        o: the runs of the tensor, in order.
        busy: runs remain.
        first: the run is the first one of an index of the outermost dimension with several. Only with `packets`.
    """

    def __init__(self, packets: bool = False):
        self.packets = packets
        super().__init__(
            {
                "start": In(Start),
                "rows": In(stream.Signature(JobRow)),
                "o": Out(stream.Signature(Run)),
                "busy": Out(1),
            }
            | ({"first": Out(1)} if packets else {})
        )

    def elaborate(self, platform):
        m = Module()
        place = data.StructLayout({"address": HBM_ADDRESS_BITS, "partition": PARTITION_BITS})
        side, indexed, waiting = Signal(Side, reset_less=True), Signal(), Signal()
        is_axis = [Signal(name=f"is_axis{d}", reset_less=True) for d in range(DMA_DIMENSIONS)]
        starts = [Signal(place, name=f"start{d}", reset_less=True) for d in range(DMA_DIMENSIONS)]
        # `ended`: the dimension is at its last index. It is a register, because the selection of the next run is a
        # critical path.
        index = [Signal(len(side.last[d]), name=f"index{d}", reset_less=True) for d in range(DMA_DIMENSIONS)]
        ended = [Signal(name=f"ended{d}", reset_less=True) for d in range(DMA_DIMENSIONS)]
        skips = Signal()
        dimension, finished = self._next_dimension(m, ended, skips)
        moved = self._move(m, side, is_axis, starts, dimension)
        m.d.comb += [
            self.o.valid.eq(self.busy & ~waiting),
            self.o.payload.storage.eq(side.storage),
            self.o.payload.partition.eq(starts[0].partition),
            self.o.payload.address.eq(starts[0].address),
            self.o.payload.bytes.eq(side.bytes),
            self.rows.ready.eq(self.busy & waiting),
            skips.eq(self.rows.valid & self.rows.ready & self.rows.payload.skip),
        ]

        if self.packets:
            outermost = Array(~Cat(list(side.last)[d + 1 :]).any() for d in range(DMA_DIMENSIONS))
            with m.If(self.start.valid):
                m.d.sync += self.first.eq(1)
            with m.Elif((self.o.valid & self.o.ready) | skips):
                m.d.sync += self.first.eq(outermost[dimension])

        with m.If(self.start.valid):
            m.d.sync += [side.eq(self.start.side), indexed.eq(self.start.indexed)]
            m.d.sync += [self.busy.eq(1), waiting.eq(self.start.indexed)]
            for d in range(DMA_DIMENSIONS):
                m.d.sync += [
                    is_axis[d].eq(self.start.side.axis == d),
                    index[d].eq(0),
                    ended[d].eq(self.start.side.last[d] == 0),
                    starts[d].address.eq(self.start.side.address),
                    starts[d].partition.eq(self.start.side.partition),
                ]
        with m.Elif((self.o.valid & self.o.ready) | skips):
            m.d.sync += [self.busy.eq(~finished), waiting.eq(indexed & (dimension == _OUTERMOST))]
            for d in range(DMA_DIMENSIONS):
                with m.If(dimension >= d if d else 1):
                    following = (index[d] + 1)[: len(index[d])]
                    m.d.sync += [
                        starts[d].eq(moved),
                        index[d].eq(Mux(dimension == d, following, 0)),
                        ended[d].eq(Mux(dimension == d, following == side.last[d], side.last[d] == 0)),
                    ]
        with m.Elif(self.rows.valid & self.rows.ready):
            m.d.sync += [self.busy.eq(~self.rows.payload.bad), waiting.eq(0)]
            for d in range(_OUTERMOST):
                m.d.sync += starts[d].address.eq(starts[_OUTERMOST].address + self.rows.payload.offset)
        return m

    @staticmethod
    def _next_dimension(m: Module, ended: list[Signal], skips: Signal) -> tuple[Signal, Signal]:
        """Return the dimension of the next step, and whether the walk is finished.

        The dimension is the innermost one that is not at its last index. A skipped row counts as complete.
        """
        dimension, finished = Signal(range(DMA_DIMENSIONS)), Signal()
        m.d.comb += finished.eq(1)
        for d in reversed(range(DMA_DIMENSIONS)):
            with m.If(~ended[d] & (~skips if d < _OUTERMOST else 1)):
                m.d.comb += [dimension.eq(d), finished.eq(0)]
        return dimension, finished

    @staticmethod
    def _move(m: Module, side, is_axis: list[Signal], starts: list[Signal], dimension: Signal) -> Signal:
        """Return the start of the next run along `dimension`: the current start plus one step."""
        step, start, moved = Signal(len(side.step[0])), Signal.like(starts[0]), Signal.like(starts[0])
        m.d.comb += [
            step.eq(Array(side.step[d].as_unsigned() for d in range(DMA_DIMENSIONS))[dimension]),
            start.eq(Array(starts)[dimension]),
            moved.eq(start),
        ]
        with m.If(Array(is_axis)[dimension]):
            m.d.comb += moved.partition.eq(start.partition + step[:PARTITION_BITS])
        with m.Else():
            m.d.comb += moved.address.eq(start.address + (step.as_signed() << side.size))
        return moved
