"""Extent of a DMA tensor: its bounds and its runs, one dimension per cycle with one multiplier.

A dimension continues the run of those below it if its step equals their number of elements. The run then grows by the
dimension's span: step * (count - 1).
"""

from amaranth import Module, Mux, Signal, signed, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.arith.pipeline import delayed
from neuroncore_rtl.spec.isa import DMA_DIMENSIONS

__all__ = ["Extent"]

_SPAN_BITS = 16 + 32
_OUTERMOST = DMA_DIMENSIONS - 1


class Extent(wiring.Component):
    """Processes the dimensions of one tensor, innermost first.

    Arguments:
        latency: cycles from a turn to its multiplication; 0 or 1.

    Ports:
        turn: 0 to `TURNS` - 1, one cycle each: turn d multiplies for dimension d, and turn d + 1 adds this product to
            the results. Results are valid 1 + `latency` cycles after the last turn, until the next turn 0.
        count: number of elements per dimension; like all inputs, stable until the results are valid.
        step: distance of neighbours per dimension, in elements.
        axis: dimension in which a step counts partitions.
        rows: the outermost dimension consists of rows that row numbers select; successive rows never form one run.
        indexed: the row numbers select rows of this tensor; the bounds are then the bounds of one row.
        low: position of the lowest element, relative to the first element; at most 0.
        high: position of the highest element, relative to the first element; at least 0.
        partition_low: lowest partition, relative to the partition of the first element; at most 0.
        partition_high: highest partition, relative to the partition of the first element; at least 0.
        elements: number of elements per run, valid only for a legal tensor.
        last: index of the last run per dimension.
    """

    TURNS = DMA_DIMENSIONS + 1

    def __init__(self, latency: int = 0):
        self.latency = latency
        super().__init__(
            {
                "turn": In(range(self.TURNS)),
                "count": In(data.ArrayLayout(unsigned(16), DMA_DIMENSIONS)),
                "step": In(data.ArrayLayout(signed(32), DMA_DIMENSIONS)),
                "axis": In(3),
                "rows": In(1),
                "indexed": In(1),
                "low": Out(signed(_SPAN_BITS + 3)),
                "high": Out(signed(_SPAN_BITS + 3)),
                "partition_low": Out(signed(_SPAN_BITS)),
                "partition_high": Out(signed(_SPAN_BITS)),
                "elements": Out(signed(_SPAN_BITS)),
                "last": Out(data.ArrayLayout(unsigned(16), DMA_DIMENSIONS)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        count, step = Signal(16), Signal(signed(32))
        with m.Switch(self.turn):
            for d in range(DMA_DIMENSIONS):
                with m.Case(d):
                    m.d.comb += [count.eq(self.count[d]), step.eq(self.step[d])]
            with m.Default():
                pass
        count, step, turn = (
            delayed(m, value, self.latency, name)
            for value, name in ((count, "count"), (step, "step"), (self.turn, "turn"))
        )

        # Values of the dimension that was multiplied in the previous turn.
        last, late_last = Signal(16), Signal(16, reset_less=True)
        late_step, span = Signal(signed(32), reset_less=True), Signal(signed(_SPAN_BITS), reset_less=True)
        below, above = Signal(signed(_SPAN_BITS)), Signal(signed(_SPAN_BITS))
        dimension, axis, row = Signal(range(DMA_DIMENSIONS)), Signal(), Signal()
        merging, merges = Signal(reset_less=True), Signal()
        m.d.comb += [
            last.eq(Mux(count == 0, 0, count - 1)),
            below.eq(Mux(span < 0, span, 0)),
            above.eq(Mux(span < 0, 0, span)),
            axis.eq(self.axis == dimension),
            row.eq(dimension == _OUTERMOST),
            merges.eq(merging & ((late_last == 0) | ((late_step == self.elements) & ~axis & ~(row & self.rows)))),
        ]
        m.d.sync += [late_last.eq(last), late_step.eq(step), span.eq(last * step), dimension.eq(turn)]
        with m.If(turn == 0):
            m.d.sync += [
                self.low.eq(0),
                self.high.eq(0),
                self.partition_low.eq(0),
                self.partition_high.eq(0),
                self.elements.eq(1),
                merging.eq(1),
            ]
        with m.Else():
            with m.If(axis):
                m.d.sync += [self.partition_low.eq(below), self.partition_high.eq(above)]
            with m.Elif(~(row & self.indexed)):
                m.d.sync += [self.low.eq(self.low + below), self.high.eq(self.high + above)]
            with m.If(merges):
                m.d.sync += self.elements.eq(self.elements + span)
            with m.Else():
                m.d.sync += merging.eq(0)
            with m.Switch(dimension):
                for d in range(DMA_DIMENSIONS):
                    with m.Case(d):
                        m.d.sync += self.last[d].eq(Mux(merges, 0, late_last))
                with m.Default():
                    pass
        return m
