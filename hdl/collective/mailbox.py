"""Mailbox: stores READY flits of other cores (announcements that they can receive) until this core sends to them."""

from amaranth import Array, Module, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.spec.isa.collective import SIGNATURE_BITS
from neuroncore_rtl.spec.link import CORE_BITS

__all__ = ["Mailbox"]


class Mailbox(wiring.Component):
    """Holds one announcement per core.

    One entry per core suffices: a core sends its next announcement only after the announced transfer.

    Ports:
        put: an announcement (READY of another core) arrives in this cycle.
        source: core that sends this announcement.
        announced: signature in this announcement.
        core: core to look up.
        there: an announcement of that core is stored; valid `LATENCY` cycles after `core`.
        found: signature in that announcement; valid `LATENCY` cycles after `core`.
        take: removes the announcement of `core`; only if `there`.
    """

    LATENCY = 1
    """Cycles from `core`, and from an arriving announcement, to `there` and `found`."""

    def __init__(self, cores: int):
        self.cores = cores
        super().__init__(
            {
                "put": In(1),
                "source": In(CORE_BITS),
                "announced": In(SIGNATURE_BITS),
                "core": In(CORE_BITS),
                "there": Out(1),
                "found": Out(SIGNATURE_BITS),
                "take": In(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory = store = memory.Memory(shape=SIGNATURE_BITS, depth=self.cores, init=[])
        write = store.write_port()
        read = store.read_port(transparent_for=(write,))
        full = Array(Signal(name=f"full{core}") for core in range(self.cores))
        m.d.comb += [
            write.en.eq(self.put),
            write.addr.eq(self.source),
            write.data.eq(self.announced),
            read.addr.eq(self.core),
            self.found.eq(read.data),
        ]
        with m.If(self.put):
            m.d.sync += full[self.source].eq(1)
        with m.If(self.take):
            m.d.sync += full[self.core].eq(0)
        m.d.sync += self.there.eq((full[self.core] & ~self.take) | (self.put & (self.source == self.core)))
        return m
