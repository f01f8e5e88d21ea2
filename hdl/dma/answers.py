"""DMA write responses: retire copies to HBM and detect their failure.

A copy is closed when its last burst is complete; the next copy does not wait for the responses. Responses arrive in
order, so a copy retires when at least as many have arrived as bursts were complete when it closed. More may have
arrived: a copy that skipped all of its rows has no burst, but retires after the copy before it.
"""

from amaranth import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.memory.axi import RESPONSE_OKAY, write_responses
from neuroncore_rtl.hdl.primitives.fifo import Fifo
from neuroncore_rtl.spec import timing

__all__ = ["Answers", "CopyAnswers"]


class CopyAnswers(wiring.Signature):
    """State of the closed copies, seen from the sequencer.

    Members:
        close: a copy is over: its last burst completes in this cycle, or was complete before; only if `closable`.
        closable: another copy may be closed.
        retired: pulse per closed copy, in order, once its writes are answered.
        quiet: every burst is answered.
        idle: `quiet`, and every closed copy has retired.
        failed: a response was an error, and all copies before the failed one have retired; stays until reset.
    """

    def __init__(self):
        members = dict.fromkeys(("closable", "retired", "quiet", "idle", "failed"), In(1))
        super().__init__({"close": Out(1), **members})


class Answers(wiring.Component):
    """Counts bursts and their responses.

    Ports:
        burst: a burst is completed in this cycle; only if `room`.
        room: fewer than `BURSTS` bursts are unanswered.
        b: AXI write responses, always accepted.
    """

    BURSTS = timing.WRITER_BURSTS
    """Maximum number of unanswered bursts."""

    COPIES = 8
    """Maximum number of closed copies that have not retired."""

    burst: In(1)
    room: Out(1)
    b: In(write_responses(1, always_ready=True))
    copies: In(CopyAnswers())

    def elaborate(self, platform):
        m = Module()
        # Counters with a range of 4 * BURSTS: after an error bursts continue, so a copy may lag by more than BURSTS.
        begun, answered, missing, good = (
            Signal(range(4 * self.BURSTS), name=n) for n in ("begun", "answered", "missing", "good")
        )
        # Good responses before the first error, minus the next copy's requirement: at most COPIES; negative if too few.
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
            # Copies with good responses retire first: the error is in a later one.
            self.copies.failed.eq(self.copies.failed | (bad & ~self.copies.retired)),
        ]
        return m
