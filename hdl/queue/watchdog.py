"""Watchdog: reports the blocking record when nothing in the core makes progress."""

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
    """Watchdog: reports an error after `limit` + 1 cycles in a row without progress while a queue has work.

    Arguments:
        queues: number of queues.
        collective: index of the collective engine's queue; None if there is no collective engine, and then the ports
            `peer` and `peer_address` do not exist.

    Ports:
        limit: number of cycles without progress.
        progress: a queue, semaphore or memory port makes progress in this cycle.
        busy: one bit per queue, set when the queue has work.
        waiting: one bit per queue, set when its next record waits for a semaphore.
        addresses: HBM address of each queue's waiting record, else of its oldest unfinished one.
        shortages: unsatisfied wait of each waiting queue.
        peer: core that the collective in flight waits for.
        peer_address: HBM address of the record of the collective in flight.
        error: reported two cycles later, held until reset. By priority: STUCK with the collective queue and the other
            core if a collective waits for a core; WATCHDOG with the lowest waiting queue; STUCK with the lowest busy
            queue.
    """

    WAITS_FOR_CORE = 1 << DETAIL_CORE_BITS
    """Flag in the detail of STUCK: the lower bits are the number of a core."""

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
        # `progress` arrives late in its cycle, so it is registered. Without progress the other inputs do not change.
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
