"""Update sequencer: the semaphore updates of one record, one per cycle."""

from amaranth import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.queue.semaphores import Update, UpdateOp

__all__ = ["Updates"]


class Updates(wiring.Component):
    """Update sequencer: offers the updates of a record in order and skips NONE.

    Ports:
        valid: a record has finished; held until `done`.
        updates: the two semaphore updates of the record.
        update: the next update to make, offered in the same cycle.
        done: no update remains after this cycle; the next record may follow.
    """

    valid: In(1)
    updates: In(data.ArrayLayout(Update, 2))
    update: Out(stream.Signature(Update))
    done: Out(1)

    def elaborate(self, platform):
        m = Module()
        first, second = self.updates
        made = Signal()  # the first update is made
        at_first = Signal()
        m.d.comb += [
            at_first.eq(~made & (first.op != UpdateOp.NONE)),
            self.update.payload.eq(Mux(at_first, first, second)),
            self.update.valid.eq(self.valid & (self.update.payload.op != UpdateOp.NONE)),
            self.done.eq(
                self.valid & (self.update.ready | ~self.update.valid) & ~(at_first & (second.op != UpdateOp.NONE))
            ),
        ]
        with m.If(self.update.valid & self.update.ready):
            m.d.sync += made.eq(~self.done)
        return m
