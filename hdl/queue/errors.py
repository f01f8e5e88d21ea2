"""Core errors: the report of a queue, and the register that keeps the first error."""

from amaranth import Module, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.spec import isa
from neuroncore_rtl.spec.isa import HBM_ADDRESS_BITS
from neuroncore_rtl.spec.isa.cause import CAUSE_BITS, DETAIL_BITS

__all__ = ["BootError", "CoreError", "Errors", "QueueError"]


class QueueError(data.Struct):
    """First error of a queue, held until reset.

    address: HBM address of the record.
    """

    valid: unsigned(1)
    cause: unsigned(CAUSE_BITS)
    address: unsigned(HBM_ADDRESS_BITS)
    detail: unsigned(DETAIL_BITS)


class CoreError(data.Struct):
    """Error of a core: the fields of `QueueError`, and the index of the queue."""

    valid: unsigned(1)
    queue: unsigned(8)
    cause: unsigned(CAUSE_BITS)
    address: unsigned(HBM_ADDRESS_BITS)
    detail: unsigned(DETAIL_BITS)


class BootError(data.Struct):
    """Error of the boot loader: the image's header is wrong or cannot be read.

    detail: index of the wrong header word.
    """

    valid: unsigned(1)
    detail: unsigned(DETAIL_BITS)


class Errors(wiring.Component):
    """First-error register. Priority within a cycle: boot, then the lowest-numbered queue, then the watchdog.

    Arguments:
        queues: number of queues.

    Ports:
        boot, queue_errors, watchdog: errors by source.
        error: the first reported error, `LATENCY` cycles later, held until reset.
        halt: an error was reported; no queue may begin another record.
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
