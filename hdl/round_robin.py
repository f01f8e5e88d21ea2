"""Whose turn it is: a grant that goes round among those who ask."""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["RoundRobin"]


class RoundRobin(wiring.Component):
    """Grants the first request behind the one that was taken last; nobody waits for more than `count` - 1 others.

    Arguments:
        count: of those who may ask.

    Ports:
        requests: a bit for each. taken: the granted one gets what it asks for at the end of this cycle.
        grant: its number, without latency; means nothing if nobody asks.
    """

    def __init__(self, count: int):
        self.count = count
        self.behind = Signal(count, name="behind")
        super().__init__({"requests": In(count), "taken": In(1), "grant": Out(range(max(2, count)))})

    def elaborate(self, platform):
        m = Module()
        behind = self.behind
        later, among, first = (Signal(self.count, name=n) for n in ("later", "among", "first"))
        m.d.comb += [
            later.eq(self.requests & behind),
            among.eq(Mux(later.any(), later, self.requests)),
            first.eq(among & ~(among - 1)),
            self.grant.eq(Cat((first & _numbers_with(bit, self.count)).any() for bit in range(len(self.grant)))),
        ]
        with m.If(self.taken):
            m.d.sync += behind.eq(~(first | (first - 1)))
        return m


def _numbers_with(bit: int, count: int) -> int:
    """Return the mask of the numbers below `count` that have a bit set."""
    return sum(1 << number for number in range(count) if number >> bit & 1)
