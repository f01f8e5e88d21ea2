"""A queue issues records in order, and retires each once: bounded."""

from amaranth.hdl import Assert, Assume, Module, Signal

from neuroncore_rtl.hdl.queue.queue import Queue
from neuroncore_rtl.spec.isa import HBM_ADDRESS_BITS, HEADER_BITS, Engine
from neuroncore_rtl.tb.proofs.proof import Model, Proof, stream_stays

__all__ = ["PROOFS", "InOrder"]

NUMBER_BITS = 5


class NarrowQueue(Queue):
    """A queue whose instructions have few bits: it only hands them on."""

    body_bits = property(lambda self: 4, lambda self, value: None)


class InOrder(Model):
    """Record n that is issued, or passed, is record n of the blocks: its address, and what came from there. It goes
    when its semaphores allow, retires after it was issued, once, in order, and is counted once.

    Doorbells, memory, semaphores and the engine are free: memory answers in order, the engine finishes what it has.
    """

    def __init__(self):
        super().__init__(NarrowQueue(Engine.VECTOR, records=2), number=NUMBER_BITS)

    def properties(self, m: Module) -> None:
        unit, number = self.unit, self.number
        asked, came, went, flown, retired = (
            Signal(NUMBER_BITS, name=name) for name in ("asked", "came", "went", "flown", "retired")
        )
        address, body = Signal(HBM_ADDRESS_BITS), Signal(unit.body_bits)
        stream_stays(m, unit.blocks)
        m.d.comb += [
            Assume(~unit.halt & ~unit.engine_error.valid & ~unit.update_refused),
            Assume(~unit.record.valid | (came < asked)),
            Assume(unit.record.payload.last),  # all of it comes at once
            Assume(~unit.completions | (retired != flown)),
        ]
        with m.If(unit.request.valid & unit.request.ready):
            m.d.sync += asked.eq(asked + 1)
            with m.If(asked == number):
                m.d.sync += address.eq(unit.request.payload)
        with m.If(unit.record.valid):
            m.d.sync += came.eq(came + 1)
            with m.If(came == number):
                m.d.sync += body.eq(unit.record.payload.data[HEADER_BITS:])
        with m.If(unit.issue.valid):
            m.d.comb += Assert(went < came)
            with m.If(went == number):
                m.d.comb += [Assert(unit.issue.payload == body), Assert(unit.issued_address == address)]
        with m.If(unit.issued):
            m.d.sync += went.eq(went + 1)
            m.d.comb += Assert(unit.passed != (unit.issue.valid & unit.issue.ready))
            with m.If(went == number):
                m.d.comb += Assert(unit.issued_address == address)
        self._requests(m)

        # Of those that the engine was given, which NOPs are not.
        given = unit.issued & ~unit.passed
        flight, is_watched = Signal(HBM_ADDRESS_BITS), Signal()
        m.d.comb += is_watched.eq(flown == number)
        m.d.sync += [flown.eq(flown + given), retired.eq(retired + unit.completions)]
        with m.If(given & is_watched):
            m.d.sync += flight.eq(unit.issued_address)
        m.d.comb += Assert(unit.retired == unit.completions)
        with m.If(unit.retired & (retired == number)):
            m.d.comb += Assert(unit.retired_address[0] == flight)
        m.d.comb += Assert(unit.retired_count <= went)
        self._cleared(m)

    def _requests(self, m: Module) -> None:
        """No more records are asked for than blocks have, and the first of the first block at first."""
        unit, first = self.unit, self._first(m)
        rung, asked = Signal(20), Signal(NUMBER_BITS)
        moves = unit.request.valid & unit.request.ready
        with m.If(unit.blocks.valid & unit.blocks.ready):
            m.d.sync += rung.eq(rung + unit.blocks.payload.count)
        with m.If(moves):
            m.d.sync += asked.eq(asked + 1)
            m.d.comb += Assert(asked < rung)
            with m.If(asked == 0):
                m.d.comb += Assert(unit.request.payload == first)

    def _first(self, m: Module) -> Signal:
        """Return where the first block that has records begins."""
        unit, some, first = self.unit, Signal(), Signal(HBM_ADDRESS_BITS)
        with m.If(unit.blocks.valid & unit.blocks.ready & (unit.blocks.payload.count != 0) & ~some):
            m.d.sync += [some.eq(1), first.eq(unit.blocks.payload.address)]
        return first

    def _cleared(self, m: Module) -> None:
        """What is on offer had both its semaphores, in some cycle since the one before it went."""
        unit, allowed = self.unit, Signal()
        with m.If(unit.issued):
            m.d.sync += allowed.eq(0)
        with m.Elif(unit.wait_satisfied):
            m.d.sync += allowed.eq(1)
        m.d.comb += Assert(~unit.issue.valid | allowed)


PROOFS = (Proof("in order, each once", InOrder, 10),)
