"""HBM's answers to what was written: which copies are finished, and whether one failed.

A copy is over when its last burst is complete; the next one need not wait for the answers. They come in order, so a
copy is finished when at least as many have come as there were bursts when it was over: more, if behind one that wrote
is one that skipped all of its rows, which has to wait for its turn.
"""

from amaranth import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.memory.axi import RESPONSE_OKAY, write_responses
from neuroncore_rtl.hdl.primitives.fifo import Fifo

__all__ = ["Answers", "CopyAnswers"]


class CopyAnswers(wiring.Signature):
    """What the answers mean for copies, seen from who wants to know.

    Members:
        close: a copy is over, the last of its bursts complete now or before; only if `closable`.
        retired: a pulse for each closed copy, in order, when its writes are answered.
        quiet: every burst is answered. idle: and every copy is retired.
        failed: an answer was an error, and those before it have been retired; stays until reset. The copy is the first
            that has not retired.
    """

    def __init__(self):
        members = dict.fromkeys(("closable", "retired", "quiet", "idle", "failed"), In(1))
        super().__init__({"close": Out(1), **members})


class Answers(wiring.Component):
    """Counts bursts and answers.

    Ports:
        burst: one is complete; only if `room`.
        b: AXI's channel of answers, which are always taken.
        copies: :class:`CopyAnswers`.
    """

    BURSTS = 128
    """Bursts that are not yet answered."""

    COPIES = 8
    """Copies that are over and not yet answered."""

    burst: In(1)
    room: Out(1)
    b: In(write_responses(1, always_ready=True))
    copies: In(CopyAnswers())

    def elaborate(self, platform):
        m = Module()
        # Behind an error bursts go on while copies wait for their turn, so that a copy may be more than BURSTS behind.
        begun, answered, missing, good = (
            Signal(range(4 * self.BURSTS), name=n) for n in ("begun", "answered", "missing", "good")
        )
        # Good answers, before the first error, beyond those of the copy that is next; up to COPIES, else negative.
        ahead, bad = Signal.like(begun), Signal()
        m.submodules.over = over = Fifo(begun.shape(), self.COPIES)
        m.d.comb += [
            missing.eq(begun - answered),
            ahead.eq(good - over.o.payload),
            self.room.eq(missing != self.BURSTS),
            self.copies.quiet.eq(missing == 0),
            self.copies.idle.eq(self.copies.quiet & ~over.o.valid),
            self.copies.closable.eq(over.i.ready),
            over.i.valid.eq(self.copies.close),
            over.i.payload.eq(begun + self.burst),
            self.copies.retired.eq(over.o.valid & ~ahead[-1] & ~self.copies.failed),
            over.o.ready.eq(self.copies.retired),
        ]
        m.d.sync += [
            begun.eq(begun + self.burst),
            answered.eq(answered + self.b.valid),
            good.eq(good + (self.b.valid & (self.b.payload.resp == RESPONSE_OKAY) & ~bad)),
            bad.eq(bad | (self.b.valid & (self.b.payload.resp != RESPONSE_OKAY))),
            # Copies that wait for their turn only are not to blame.
            self.copies.failed.eq(self.copies.failed | (bad & ~self.copies.retired)),
        ]
        return m
