"""Errors of the core: how a queue reports one, and the latch that keeps the first."""

from amaranth import Module, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.spec import isa
from neuroncore_rtl.spec.isa import HBM_ADDRESS_BITS
from neuroncore_rtl.spec.isa.cause import CAUSE_BITS, DETAIL_BITS

__all__ = ["BootError", "CoreError", "Errors", "QueueError"]


class QueueError(data.Struct):
    """The first error of a queue; stays until reset. address: of the record in HBM."""

    valid: unsigned(1)
    cause: unsigned(CAUSE_BITS)
    address: unsigned(HBM_ADDRESS_BITS)
    detail: unsigned(DETAIL_BITS)


class CoreError(data.Struct):
    """A :class:`QueueError` and the number of its queue."""

    valid: unsigned(1)
    queue: unsigned(8)
    cause: unsigned(CAUSE_BITS)
    address: unsigned(HBM_ADDRESS_BITS)
    detail: unsigned(DETAIL_BITS)


class BootError(data.Struct):
    """valid: the image's header is wrong, or cannot be read. detail: which of its words."""

    valid: unsigned(1)
    detail: unsigned(DETAIL_BITS)


class Errors(wiring.Component):
    """Keeps the first error since reset; of several in a cycle boot's, else the lowest queue's, else the watchdog's.

    Arguments:
        queues: how many there are.

    Ports:
        boot, queue_errors, watchdog: what is reported.
        error: the first of it, `LATENCY` cycles later, until reset.
        halt: there is one: no queue begins another record.
    """

    LATENCY = 1

    def __init__(self, queues: int):
        self.queues = queues
        super().__init__(
            {
                "boot": In(BootError),
                "queue_errors": In(QueueError).array(queues),
                "watchdog": In(CoreError),
                "error": Out(CoreError),
                "halt": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.halt.eq(self.error.valid)
        with m.If(~self.error.valid):
            with m.If(self.boot.valid):
                m.d.sync += [
                    self.error.valid.eq(1),
                    self.error.cause.eq(isa.Cause.BOOT),
                    self.error.detail.eq(self.boot.detail),
                ]
            for number, report in enumerate(self.queue_errors):
                with m.Elif(report.valid):
                    m.d.sync += [
                        self.error.valid.eq(1),
                        self.error.queue.eq(number),
                        self.error.cause.eq(report.cause),
                        self.error.address.eq(report.address),
                        self.error.detail.eq(report.detail),
                    ]
            with m.Elif(self.watchdog.valid):
                m.d.sync += self.error.eq(self.watchdog)
        return m
