"""HBM's answers to what was written: which copies are finished, and whether one failed.

A copy is over when its last burst is complete; the next one need not wait for the answers. They come in order, so a
copy is finished when as many have come as there were bursts when it was over.
"""

from amaranth import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.fifo import Fifo
from neuroncore_rtl.hdl.memory.axi import RESPONSE_OKAY, write_responses

__all__ = ["Answers"]


class Answers(wiring.Component):
    """Counts bursts and answers.

    Ports:
        burst: one is complete; only if `room`.
        b: AXI's channel of answers, which are always taken.
        close: a copy of at least one burst is over, the last of them complete now or before; only if `closable`.
        retired: a pulse for each closed copy, in order, when its writes are answered.
        quiet: every burst is answered. idle: and every copy is retired.
        failed: an answer was an error; stays until reset. The copy is the first that has not retired.
    """

    BURSTS = 128
    """Bursts that are not yet answered."""

    COPIES = 8
    """Copies that are over and not yet answered."""

    burst: In(1)
    room: Out(1)
    b: In(write_responses(1, always_ready=True))
    close: In(1)
    closable: Out(1)
    retired: Out(1)
    quiet: Out(1)
    idle: Out(1)
    failed: Out(1)

    def elaborate(self, platform):
        m = Module()
        begun, answered, missing = (Signal(range(2 * self.BURSTS), name=n) for n in ("begun", "answered", "missing"))
        m.submodules.copies = copies = Fifo(begun.shape(), self.COPIES)
        m.d.comb += [
            missing.eq(begun - answered),
            self.room.eq(missing != self.BURSTS),
            self.quiet.eq(missing == 0),
            self.idle.eq(self.quiet & ~copies.o.valid),
            self.closable.eq(copies.i.ready),
            copies.i.valid.eq(self.close),
            copies.i.payload.eq(begun + self.burst),
            self.retired.eq(copies.o.valid & (answered == copies.o.payload) & ~self.failed),
            copies.o.ready.eq(self.retired),
        ]
        m.d.sync += [
            begun.eq(begun + self.burst),
            answered.eq(answered + self.b.valid),
            self.failed.eq(self.failed | (self.b.valid & (self.b.payload.resp != RESPONSE_OKAY))),
        ]
        return m
