"""The watchdog: says which record everything waits for when nothing moves any more."""

from amaranth import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.collective.peer import Peer
from neuroncore_rtl.hdl.queue.errors import CoreError
from neuroncore_rtl.hdl.queue.semaphores import Shortage
from neuroncore_rtl.spec import isa
from neuroncore_rtl.spec.isa import HBM_ADDRESS_BITS
from neuroncore_rtl.spec.isa.cause import DETAIL_CORE_BITS

__all__ = ["Watchdog"]


class Watchdog(wiring.Component):
    """Reports an error in the first cycle without progress that follows `limit` such cycles, while a queue has work.

    Arguments:
        queues: how many there are.
        collective: the collective engine's; None if there is none, and then neither `peer` nor `peer_address`.

    Ports:
        limit: cycles.
        progress: something moves in this cycle: a queue, a semaphore, or an engine at its memory.
        busy: a bit for each queue: it has work. waiting: its next record waits for a semaphore.
        addresses: the record of each queue that is waiting, or else the oldest that has not finished.
        shortages: what each that is waiting lacks (:class:`hdl.queue.semaphores.Semaphores`).
        peer: the core that a collective waits for. peer_address: the collective's record.
        error: STUCK with the collective queue if a collective waits for another core, and that core; WATCHDOG with the
            lowest queue that is waiting; STUCK with the lowest that is busy if none is waiting. Two cycles later; stays
            until reset.
    """

    WAITS_FOR_CORE = 1 << DETAIL_CORE_BITS
    """In the detail of STUCK: the lower bits are a core."""

    def __init__(self, queues: int, collective: int | None = None):
        self.queues = queues
        self.collective = collective
        peer = {} if collective is None else {"peer": In(Peer), "peer_address": In(HBM_ADDRESS_BITS)}
        super().__init__(
            {
                "limit": In(32),
                "progress": In(1),
                "busy": In(queues),
                "waiting": In(queues),
                "addresses": In(HBM_ADDRESS_BITS).array(queues),
                "shortages": In(Shortage).array(queues),
                "error": Out(CoreError),
                **peer,
            }
        )

    def elaborate(self, platform):
        m = Module()
        # What moves is known late in a cycle. Of the next cycle all is still as it was if nothing did.
        moved, quiet = Signal(init=1), Signal(32)
        waiting, named = Signal(), Signal(self.queues)
        m.d.sync += [
            moved.eq(self.progress | ~self.busy.any()),
            waiting.eq(self.waiting.any()),
            named.eq(Mux(self.waiting.any(), self.waiting, self.busy)),
        ]
        with m.If(moved):
            m.d.sync += quiet.eq(0)
        with m.Elif(quiet < self.limit):
            m.d.sync += quiet.eq(quiet + 1)
        with m.Elif(~self.error.valid):
            m.d.sync += [
                self.error.valid.eq(1),
                self.error.cause.eq(Mux(waiting, isa.Cause.WATCHDOG, isa.Cause.STUCK)),
            ]
            for queue in reversed(range(self.queues)):
                with m.If(named[queue]):
                    m.d.sync += [
                        self.error.queue.eq(queue),
                        self.error.address.eq(self.addresses[queue]),
                        self.error.detail.eq(Mux(waiting, self.shortages[queue], 0)),
                    ]
            if self.collective is not None:
                with m.If(self.peer.valid):
                    m.d.sync += [
                        self.error.cause.eq(isa.Cause.STUCK),
                        self.error.queue.eq(self.collective),
                        self.error.address.eq(self.peer_address),
                        self.error.detail.eq(self.WAITS_FOR_CORE | self.peer.core),
                    ]
        return m
