"""Queue: issues records in order and retires each once; bounded."""

from amaranth.hdl import Assert, Assume, Module, Signal

from neuroncore_rtl.hdl.queue.queue import Queue
from neuroncore_rtl.spec.isa import HBM_ADDRESS_BITS, HEADER_BITS, Engine
from neuroncore_rtl.tb.proofs.proof import Model, Proof, nth_payload, stream_stays

__all__ = ["PROOFS", "InOrder"]

NUMBER_BITS = 5


class NarrowQueue(Queue):
    """A queue with short instructions, for a faster proof: a queue only forwards instructions."""

    body_bits = property(lambda self: 4, lambda self, value: None)


class InOrder(Model):
    """The nth record that is issued to the engine or passed (a NOP) is the nth record of the blocks, for any n.

    A record is issued when its semaphores allow it. It retires once, in order, and each retirement is counted once.
    Doorbells, memory, semaphores and the engine are free, except that memory answers in order, and the engine finishes
    only issued instructions.
    """

    def __init__(self):
        super().__init__(NarrowQueue(Engine.VECTOR, records=2), number=NUMBER_BITS)

    def properties(self, m: Module) -> None:
        unit, number = self.unit, self.number
        requests, record = unit.request.valid & unit.request.ready, unit.record.payload
        asked, address = nth_payload(m, requests, unit.request.payload, number, "asked")
        received, body = nth_payload(
            m, unit.record.valid, record.data[HEADER_BITS:][: unit.body_bits], number, "received"
        )
        given = unit.issued & ~unit.passed  # to the engine; NOPs are not
        launched, flight = nth_payload(m, given, unit.issued_address, number, "launched")
        sent, retired = (Signal(NUMBER_BITS, name=name) for name in ("sent", "retired"))
        stream_stays(m, unit.blocks)
        m.d.comb += [
            Assume(~unit.halt & ~unit.engine_error.valid & ~unit.update_refused),
            Assume(~unit.record.valid | (received < asked)),
            Assume(record.last),  # a record is one beat
            Assume(~unit.completions | (retired != launched)),
        ]
        with m.If(unit.issue.valid):
            m.d.comb += Assert(sent < received)
            with m.If(sent == number):
                m.d.comb += [Assert(unit.issue.payload == body), Assert(unit.issued_address == address)]
        with m.If(unit.issued):
            m.d.sync += sent.eq(sent + 1)
            m.d.comb += Assert(unit.passed != (unit.issue.valid & unit.issue.ready))
            with m.If(sent == number):
                m.d.comb += Assert(unit.issued_address == address)
        self._requests(m, asked)
        m.d.sync += retired.eq(retired + unit.completions)
        m.d.comb += Assert(unit.retired == unit.completions)
        with m.If(unit.retired & (retired == number)):
            m.d.comb += Assert(unit.retired_address[0] == flight)
        m.d.comb += Assert(unit.retired_count <= sent)
        self._check_semaphores(m)

    def _requests(self, m: Module, asked: Signal) -> None:
        """Assert that the queue requests at most its blocks' records, beginning with the first block's first record."""
        unit, rung, some, first = self.unit, Signal(20), Signal(), Signal(HBM_ADDRESS_BITS)
        with m.If(unit.blocks.valid & unit.blocks.ready):
            m.d.sync += rung.eq(rung + unit.blocks.payload.count)
            with m.If((unit.blocks.payload.count != 0) & ~some):
                m.d.sync += [some.eq(1), first.eq(unit.blocks.payload.address)]
        with m.If(unit.request.valid & unit.request.ready):
            m.d.comb += Assert(asked < rung)
            with m.If(asked == 0):
                m.d.comb += Assert(unit.request.payload == first)

    def _check_semaphores(self, m: Module) -> None:
        """Assert that both waits of an issued record were satisfied in a cycle since the previous issue."""
        unit, allowed = self.unit, Signal()
        with m.If(unit.issued):
            m.d.sync += allowed.eq(0)
        with m.Elif(unit.wait_satisfied):
            m.d.sync += allowed.eq(1)
        m.d.comb += Assert(~unit.issue.valid | allowed)


PROOFS = (Proof("in order, each once", InOrder, 10),)
