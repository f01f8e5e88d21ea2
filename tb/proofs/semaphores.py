"""Proof by induction that semaphores lose no update, for all combinations of requests in a cycle."""

from amaranth.hdl import Assert, Assume, Cat, Module, Mux, Signal

from neuroncore_rtl.hdl.queue.semaphores import SEMAPHORE_BITS, VALUE_BITS, Semaphores, Update, UpdateOp
from neuroncore_rtl.tb.proofs.proof import Model, Proof
from neuroncore_rtl.tb.proofs.solver import Method

__all__ = ["PROOFS", "Updated"]


class Updated(Model):
    """A semaphore's value is the result of its accepted updates, one per cycle; an update out of range is refused."""

    def __init__(self, queues: int = 2, count: int = 16):
        super().__init__(Semaphores(queues, count), watched=SEMAPHORE_BITS)

    def properties(self, m: Module) -> None:
        unit, watched = self.unit, self.watched
        index = watched[: unit.count.bit_length() - 1]
        port = unit.values.read_port(domain="comb")
        expected = Signal(VALUE_BITS)
        m.d.comb += [port.addr.eq(index), Assume(watched < unit.count)]
        with m.If(unit.ready):
            m.d.comb += Assert(port.data == expected)
        with m.Else():
            m.d.comb += [Assert((expected == 0) & (unit.swept < unit.count))]
            with m.If(unit.swept > index):
                m.d.comb += Assert(port.data == 0)

        askers = [*((one, one.payload) for one in unit.updates), (unit.access, unit.access.update)]
        refusals = [*unit.refused, unit.access.refused]
        moves = Signal()  # the watched semaphore is updated
        update, refused, result = Signal(Update), Signal(), Signal(VALUE_BITS + 1)
        for (one, asked), refusal in zip(askers, refusals, strict=True):
            with m.If(one.valid & one.ready):
                m.d.comb += [moves.eq(asked.semaphore[: len(index)] == index), update.eq(asked), refused.eq(refusal)]
        with m.Switch(update.op):
            with m.Case(UpdateOp.ADD):
                m.d.comb += result.eq(expected + update.value)
            with m.Case(UpdateOp.SUBTRACT):
                m.d.comb += result.eq(expected - update.value)
            with m.Case(UpdateOp.SET):
                m.d.comb += result.eq(update.value)
            with m.Default():
                m.d.comb += result.eq(expected)
        with m.If(moves):
            m.d.comb += Assert(refused == result[-1])
            m.d.sync += expected.eq(Mux(result[-1], expected, result))
        taken = Cat(one.valid & one.ready for one, _ in askers)
        m.d.comb += [
            Assert((taken & (taken - 1)) == 0),
            Assert(taken.any() == (unit.ready & Cat(one.valid for one, _ in askers).any())),
        ]


PROOFS = (Proof("no update is lost", Updated, 2, Method.INDUCTION),)
