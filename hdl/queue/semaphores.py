"""The core's semaphores: who waits for which value, and who changes it.

All waits are answered in the same cycle. Changes are made one a cycle, in turns among the queues and the controller, so
that each sees what those before it left.
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
"""Number of a semaphore."""

VALUE_BITS = SEMAPHORE_MAX.bit_length()
"""Value of a semaphore."""

UpdateOp = typed_enum("UpdateOp", isa.UpdateOp, 2)
"""What an update does to a semaphore; codes of `spec.isa.UpdateOp`."""


class Wait(data.Struct):
    """on: wait until the semaphore is at least the value."""

    on: unsigned(1)
    semaphore: unsigned(SEMAPHORE_BITS)
    value: unsigned(VALUE_BITS)


class Update(data.Struct):
    """What to do to a semaphore; NONE changes nothing."""

    op: UpdateOp
    semaphore: unsigned(SEMAPHORE_BITS)
    value: unsigned(VALUE_BITS)


class Shortage(data.Struct):
    """What a queue waits for, laid out as the detail of `spec.isa.Cause.WATCHDOG`: the first semaphore that is below
    the value that is wanted, and the lower bits of what it has."""

    semaphore: unsigned(SEMAPHORE_BITS)
    value: unsigned(VALUE_BITS)
    has: unsigned(8)


class SemaphoreAccess(wiring.Signature):
    """The controller's way to one semaphore, seen from its side.

    Members:
        valid, update: a request, which must stay until it is taken; NONE only reads.
        ready: it is taken at the end of this cycle.
        has: the value before it. refused: as of :class:`Semaphores`. Both with ready, or `latency` cycles later.
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
    """Counters, which are all 0 as many cycles after reset as there are; before that nothing is taken or holds.

    Arguments:
        queues: how many there are.
        count: of the counters, a power of two; of a number the upper bits are ignored if there are fewer than
            `spec.config.SEMAPHORE_COUNT`.
        latency: cycles from an update that is taken to the change, and to `refused` and `access.has`; 0 or 1.

    Ports:
        waits: two of each queue. satisfied: a bit for each queue: both hold. shortages: if not, for want of what. All
            in the same cycle; an update counts from the cycle after it was taken, or `latency` cycles later.
        updates: of each queue. One is taken per cycle, in turns; with n askers the longest wait is n - 1 cycles.
        refused: a bit for each queue: the update that is taken in this cycle, or was `latency` cycles ago, would leave
            the semaphore below 0 or above the largest value, and is not done.
        access: the controller's, which takes its turn like a queue.
        watch_semaphore, watch_value: a further wait. watch_reached: it holds, a cycle later.
        updated: an update is taken in this cycle, whoever asked.
        ready: the sweep after reset is over.
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
        """Compare both waits of a queue with the values."""
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
        """Read, change and write one semaphore in a cycle; sweep all of them after reset."""
        askers = [*((update.valid, update.payload) for update in self.updates), (self.access.valid, self.access.update)]
        m.submodules.turn = turn = RoundRobin(len(askers))
        taken, refused = Signal(len(askers)), Signal()  # whose update, and whether it is not done
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
