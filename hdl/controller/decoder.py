"""The address decoder of the controller's bus: which peripheral answers."""

from amaranth import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.controller.bus import Bus

__all__ = ["Decoder"]

REGION_BITS = 4
"""Upper bits of the address that choose the peripheral."""


class Decoder(wiring.Component):
    """Hands each request to the peripheral of its region; where there is none it answers with an error.

    Arguments:
        regions: for each peripheral, the upper `REGION_BITS` bits of the addresses that are its own.
        latency: 0, or 1: an answer takes so many cycles back, and a request waits until the one before it is answered,
            for which each peripheral is ready then.

    Ports:
        bus: the side that asks.
        peripherals: one for each entry of `regions`.

    Adds no cycle but these. A request is taken when the one before it has been answered.
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
        chosen = Signal(count + 1)  # one-hot; the last is nobody
        owner = Signal(count + 1)  # whom the request that is not yet answered went to
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
