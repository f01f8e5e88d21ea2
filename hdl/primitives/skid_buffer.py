"""Skid buffer: cuts the combinational path of `ready` between two streams at full throughput."""

from amaranth import Module, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["SkidBuffer"]


class SkidBuffer(wiring.Component):
    """Two-entry buffer: a head entry at the output, and a spare for an entry accepted while the head is stalled.

    Latency: 1 cycle. Throughput: 1 entry per cycle. All outputs are registers, so `i.ready` does not depend on
    `o.ready`. `i.ready` falls the cycle after the second entry is accepted, and rises the cycle after `o` has
    transferred an entry.

    Arguments:
        shape: shape of an entry.

    Ports:
        i: stream of entries.
        o: the same entries, in order.
    """

    def __init__(self, shape):
        entries = stream.Signature(shape)
        super().__init__({"i": In(entries), "o": Out(entries)})

    def elaborate(self, platform):
        m = Module()
        new, shown = Value.cast(self.i.payload), Value.cast(self.o.payload)
        head, spare = (Signal.like(new, name=name, reset_less=True) for name in ("head", "spare"))
        full, spare_full = Signal(), Signal()

        m.d.comb += [self.i.ready.eq(~spare_full), self.o.valid.eq(full), shown.eq(head)]
        with m.If(self.o.ready | ~full):
            m.d.sync += [full.eq(spare_full | self.i.valid), spare_full.eq(0)]
            with m.If(spare_full):
                m.d.sync += head.eq(spare)
            with m.Else():
                m.d.sync += head.eq(new)
        with m.Elif(self.i.valid & ~spare_full):
            m.d.sync += [spare.eq(new), spare_full.eq(1)]
        return m
