"""Address decoder of the controller's bus."""

from amaranth import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.controller.bus import Bus

__all__ = ["Decoder"]

REGION_BITS = 4
"""Upper address bits that select the peripheral."""


class Decoder(wiring.Component):
    """Address decoder: forwards each request to the peripheral of its region.

    An address without a peripheral is answered with an error. A request is accepted when the previous one has been
    answered. The decoder adds no cycles except `latency`.

    Arguments:
        regions: for each peripheral, the values of the upper `REGION_BITS` address bits that select it.
        latency: cycles added to a response; 0 or 1. With 1, a request waits until the previous one is answered, so that
            every peripheral is ready.

    Ports:
        bus: bus of the controller.
        peripherals: one bus per entry of `regions`.
    """

    def __init__(self, regions: tuple[tuple[int, ...], ...], latency: int = 0):
        self.regions = regions
        self.latency = latency
        super().__init__({"bus": In(Bus()), "peripherals": Out(Bus()).array(len(regions))})

    def elaborate(self, platform):
        m = Module()
        bus = self.bus
        count = len(self.regions)
        region = bus.address[32 - REGION_BITS :]
        chosen = Signal(count + 1)  # one-hot; the last bit: no peripheral
        owner = Signal(count + 1)  # the peripheral of the outstanding request, or 0
        nobody = Signal()
        free = Signal()
        answer = late = Signal(data.StructLayout({"given": 1, "error": 1, "result": 32}))
        if self.latency:
            late = Signal.like(answer, name="late_answer")
            m.d.sync += late.eq(answer)
        with m.Switch(region):
            for number, codes in enumerate(self.regions):
                with m.Case(*codes):
                    m.d.comb += chosen.eq(1 << number)
            with m.Default():
                m.d.comb += chosen.eq(1 << count)
        m.d.comb += [
            free.eq(~owner.any() if self.latency else ~owner.any() | bus.response),
            answer.given.eq(nobody),
            answer.error.eq(nobody),
            bus.ready.eq(free & (chosen[count] if not self.latency else 1)),
            bus.response.eq(late.given),
            bus.result.eq(late.result),
            bus.error.eq(late.error),
        ]
        for number in range(count):
            peripheral = self.peripherals[number]
            m.d.comb += [
                peripheral.valid.eq(bus.valid & free & chosen[number]),
                peripheral.address.eq(bus.address),
                peripheral.write.eq(bus.write),
                peripheral.mask.eq(bus.mask),
                peripheral.data.eq(bus.data),
            ]
            if not self.latency:
                with m.If(chosen[number]):
                    m.d.comb += bus.ready.eq(free & peripheral.ready)
            with m.If(owner[number]):
                m.d.comb += [
                    answer.given.eq(peripheral.response),
                    answer.result.eq(peripheral.result),
                    answer.error.eq(peripheral.error),
                ]
        taken = Signal()
        m.d.comb += taken.eq(bus.valid & bus.ready)
        m.d.sync += [
            owner.eq(Mux(taken, chosen, Mux(bus.response, 0, owner))),
            nobody.eq(taken & chosen[count]),
        ]
        return m
