"""Whose turn it is: a grant that goes round among those who ask."""

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["RoundRobin"]


class RoundRobin(wiring.Component):
    """Grants the first request behind the one that was taken last; nobody waits for more than `count` - 1 others.

    Arguments:
        count: of those who may ask.

    Ports:
        requests: a bit for each. taken: the granted one gets what it asks for at the end of this cycle.
        grant: its number, without latency; means nothing if nobody asks. chosen: its bit, if anybody does.
    """

    def __init__(self, count: int):
        self.count = count
        self.behind = Signal(count, name="behind")
        grant = Out(range(max(2, count)))
        super().__init__({"requests": In(count), "taken": In(1), "grant": grant, "chosen": Out(count)})

    def elaborate(self, platform):
        m = Module()
        behind = self.behind
        later, from_first = Signal(self.count), Signal(self.count)
        m.d.comb += [
            later.eq(self.requests & behind),
            from_first.eq(Mux(later.any(), _and_above(later), _and_above(self.requests))),
            self.chosen.eq(from_first & ~(from_first << 1)),
            self.grant.eq(Cat((self.chosen & _numbers_with(bit, self.count)).any() for bit in range(len(self.grant)))),
        ]
        with m.If(self.taken):
            m.d.sync += behind.eq(from_first << 1)
        return m


def _and_above(bits: Value) -> Value:
    """Return the lowest bit that is set and all above it, in few levels of logic."""
    step = 1
    while step < len(bits):
        bits = (bits | bits << step)[: len(bits)]
        step *= 2
    return bits


def _numbers_with(bit: int, count: int) -> int:
    """Return the mask of the numbers below `count` that have a bit set."""
    return sum(1 << number for number in range(count) if number >> bit & 1)
