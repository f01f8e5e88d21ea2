"""Index counters of an instruction's elements: four nested loops, one element per step."""

from amaranth import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.spec.isa.access import DIMENSIONS

__all__ = ["Indices"]


class Indices(wiring.Component):
    """Row-major counters over a shape.

    Ports:
        load: start again with the first element of a shape with the counts `loaded`.
        loaded: number of elements per dimension.
        counts: the same numbers, from the cycle after `load` until the last element.
        group: number of innermost dimensions in a group of elements.
        advance: continue with the next element.
        first, last: the current element is the first, the last of its group.
        end: the current element is the last one of the shape.
        dimension: dimension of the index that increases with the next element.
    """

    load: In(1)
    loaded: In(16).array(DIMENSIONS)
    counts: In(16).array(DIMENSIONS)
    group: In(3)
    advance: In(1)
    first: Out(1)
    last: Out(1)
    end: Out(1)
    dimension: Out(range(DIMENSIONS))

    def elaborate(self, platform):
        m = Module()
        left = [Signal(16, name=f"left{d}", reset_less=True) for d in range(DIMENSIONS)]
        started = [Signal(name=f"started{d}", reset_less=True) for d in range(DIMENSIONS)]
        # The end flags are registers, because they select the dimension of the next element.
        at_end = Signal(DIMENSIONS, reset_less=True)
        inside = [d < self.group for d in range(DIMENSIONS)]
        m.d.comb += [
            self.end.eq(at_end.all()),
            self.first.eq(~Cat(begun & within for begun, within in zip(started, inside, strict=True)).any()),
            self.last.eq(Cat(at_end[d] | ~within for d, within in enumerate(inside)).all()),
        ]
        for d in reversed(range(DIMENSIONS)):
            with m.If(~at_end[d]):
                m.d.comb += self.dimension.eq(d)
        for d in range(DIMENSIONS):
            with m.If(self.load):
                m.d.sync += [left[d].eq(self.loaded[d] - 1), at_end[d].eq(self.loaded[d] == 1), started[d].eq(0)]
            with m.Elif(self.advance & (self.dimension == d)):
                m.d.sync += [left[d].eq(left[d] - 1), at_end[d].eq(left[d] == 1), started[d].eq(1)]
            if d < DIMENSIONS - 1:
                with m.Elif(self.advance & (self.dimension > d)):
                    m.d.sync += [left[d].eq(self.counts[d] - 1), at_end[d].eq(self.counts[d] == 1), started[d].eq(0)]
        return m
