"""Semaphores of the core.

All waits are checked in the same cycle. Updates are made one per cycle, round robin over the queues and the controller;
each update sees the results of those before it.
"""

from amaranth import Cat, Module, Mux, Signal, unsigned
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.primitives.enumeration import typed_enum
from neuroncore_rtl.hdl.primitives.round_robin import RoundRobin
from neuroncore_rtl.spec import isa
from neuroncore_rtl.spec.config import SEMAPHORE_COUNT
from neuroncore_rtl.spec.isa.record import SEMAPHORE_MAX

__all__ = ["SEMAPHORE_BITS", "VALUE_BITS", "SemaphoreAccess", "Semaphores", "Shortage", "Update", "UpdateOp", "Wait"]

SEMAPHORE_BITS = (SEMAPHORE_COUNT - 1).bit_length()
"""Width of a semaphore's number."""

VALUE_BITS = SEMAPHORE_MAX.bit_length()
"""Width of a semaphore's value."""

UpdateOp = typed_enum("UpdateOp", isa.UpdateOp, 2)
"""Operation of an update, coded as `spec.isa.UpdateOp`."""


class Wait(data.Struct):
    """Semaphore wait.

    on: wait until the semaphore is at least `value`; 0: no wait.
    """

    on: unsigned(1)
    semaphore: unsigned(SEMAPHORE_BITS)
    value: unsigned(VALUE_BITS)


class Update(data.Struct):
    """Operation that changes a semaphore; NONE changes nothing."""

    op: UpdateOp
    semaphore: unsigned(SEMAPHORE_BITS)
    value: unsigned(VALUE_BITS)


class Shortage(data.Struct):
    """First unsatisfied wait of a queue, laid out as the detail of `spec.isa.Cause.WATCHDOG`.

    semaphore: the semaphore that is below the required value.
    value: the required value.
    has: low bits of the semaphore's current value.
    """

    semaphore: unsigned(SEMAPHORE_BITS)
    value: unsigned(VALUE_BITS)
    has: unsigned(8)


class SemaphoreAccess(wiring.Signature):
    """The controller's access to one semaphore, seen from the controller.

    Members:
        valid, update: a request, held until accepted; NONE only reads.
        ready: the request is accepted at the end of this cycle.
        has: value before the update, valid with `ready` or `latency` cycles later.
        refused: as in `Semaphores`, valid together with `has`.
    """

    def __init__(self):
        super().__init__(
            {
                "valid": Out(1),
                "update": Out(Update),
                "ready": In(1),
                "has": In(VALUE_BITS),
                "refused": In(1),
            }
        )


class Semaphores(wiring.Component):
    """Semaphores: counters with waits and arbitrated updates.

    A sweep clears one semaphore per cycle after reset. Until it ends, no update is accepted and no wait is satisfied.

    Arguments:
        queues: number of queues.
        count: number of semaphores, a power of two; below `spec.config.SEMAPHORE_COUNT`, upper bits of a semaphore's
            number are ignored.
        latency: cycles from an accepted update to its effect, to `refused` and to `access.has`; 0 or 1.

    Ports:
        waits: the two waits of each queue's next record.
        satisfied: one bit per queue, set in the same cycle when both its waits are satisfied. An update counts from the
            cycle after it was accepted, or `latency` cycles later.
        shortages: first unsatisfied wait of each queue, in the same cycle.
        updates: one stream per queue. With n requesters the longest stall is n - 1 cycles.
        refused: one bit per queue: the update accepted in this cycle, or `latency` cycles ago, is not made, because the
            semaphore would drop below 0 or exceed its largest value.
        access: the controller's access, arbitrated like a queue's update.
        watch_semaphore, watch_value: a further wait, by the controller.
        watch_reached: that wait was satisfied one cycle ago.
        updated: an update is made in this cycle.
        ready: after reset, all semaphores have been cleared.
    """

    def __init__(self, queues: int, count: int = SEMAPHORE_COUNT, latency: int = 0):
        self.latency = latency
        self.queues = queues
        self.count = count
        self.values = memory.Memory(shape=VALUE_BITS, depth=count, init=[])
        self.swept = Signal(count.bit_length(), name="swept")
        super().__init__(
            {
                "waits": In(data.ArrayLayout(Wait, 2)).array(queues),
                "satisfied": Out(queues),
                "shortages": Out(Shortage).array(queues),
                "updates": In(stream.Signature(Update)).array(queues),
                "refused": Out(queues),
                "access": In(SemaphoreAccess()),
                "watch_semaphore": In(SEMAPHORE_BITS),
                "watch_value": In(VALUE_BITS),
                "watch_reached": Out(1),
                "updated": Out(1),
                "ready": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.values = values = self.values
        for queue, (waits, shortage) in enumerate(zip(self.waits, self.shortages, strict=True)):
            self._judge(m, values, queue, waits, shortage)
        watched = values.read_port(domain="comb")
        m.d.comb += watched.addr.eq(self.watch_semaphore)
        m.d.sync += self.watch_reached.eq(self.ready & (watched.data >= self.watch_value))
        self._change(m, values)
        return m

    def _judge(self, m: Module, values, queue: int, waits, shortage):
        short = []
        for number in (0, 1):
            port = values.read_port(domain="comb")
            below = Signal(name=f"below{queue}_{number}")
            m.d.comb += [
                port.addr.eq(waits[number].semaphore),
                below.eq(waits[number].on & (port.data < waits[number].value)),
            ]
            short.append((below, waits[number], port.data))
        (first, wait0, has0), (second, wait1, has1) = short
        m.d.comb += [
            self.satisfied[queue].eq(self.ready & ~first & ~second),
            shortage.semaphore.eq(Mux(first, wait0.semaphore, wait1.semaphore)),
            shortage.value.eq(Mux(first, wait0.value, wait1.value)),
            shortage.has.eq(Mux(first, has0, has1)),
        ]

    def _change(self, m: Module, values):
        askers = [*((update.valid, update.payload) for update in self.updates), (self.access.valid, self.access.update)]
        m.submodules.turn = turn = RoundRobin(len(askers))
        taken, refused = Signal(len(askers)), Signal()  # one bit per requester; update not made
        update = Signal(Update)
        swept = self.swept
        m.d.comb += [
            self.ready.eq(swept[-1]),
            turn.requests.eq(Cat(valid for valid, _ in askers)),
            turn.taken.eq(self.ready & turn.requests.any()),
            taken.eq(Mux(self.ready, turn.chosen, 0)),
        ]
        with m.If(~self.ready):
            m.d.sync += swept.eq(swept + 1)
        with m.Switch(turn.grant):
            for number, (_, payload) in enumerate(askers):
                with m.Case(number):
                    m.d.comb += update.eq(payload)

        has, write = values.read_port(domain="comb"), values.write_port()
        result = Signal(VALUE_BITS + 1)
        changing = taken
        if self.latency:
            changing, early = Signal.like(taken, name="changing"), update
            update = Signal.like(early, name="late_update", reset_less=True)
            m.d.sync += [changing.eq(taken), update.eq(early)]
        m.d.comb += has.addr.eq(update.semaphore)
        with m.Switch(update.op):
            with m.Case(UpdateOp.ADD):
                m.d.comb += [result.eq(has.data + update.value), refused.eq(result[-1])]
            with m.Case(UpdateOp.SUBTRACT):
                m.d.comb += [result.eq(has.data - update.value), refused.eq(result[-1])]
            with m.Default():
                m.d.comb += result.eq(update.value)
        m.d.comb += [
            self.updated.eq(changing.any() & (update.op != UpdateOp.NONE)),
            write.en.eq(~self.ready | (self.updated & ~refused)),
            write.addr.eq(Mux(self.ready, update.semaphore, swept)),
            write.data.eq(Mux(self.ready, result, 0)),
            Cat(update.ready for update in self.updates).eq(taken),
            self.refused.eq(Mux(refused, changing, 0)),
            self.access.ready.eq(taken[-1]),
            self.access.has.eq(has.data),
            self.access.refused.eq(refused),
        ]
