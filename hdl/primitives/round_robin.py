"""Round-robin arbiter."""

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["RoundRobin"]


class RoundRobin(wiring.Component):
    """Round-robin arbiter: a requester waits for at most `count` - 1 grants to others.

    Arguments:
        count: number of requesters.

    Ports:
        requests: one bit per requester, set while it requests.
        taken: the granted requester is served; the next grant prefers the requesters after it.
        grant: index of the granted requester, combinational; undefined without a request.
        chosen: one-hot `grant`; 0 without a request.
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
    """Return a mask of the lowest set bit and all bits above it, in logarithmic depth."""
    step = 1
    while step < len(bits):
        bits = (bits | bits << step)[: len(bits)]
        step *= 2
    return bits


def _numbers_with(bit: int, count: int) -> int:
    return sum(1 << number for number in range(count) if number >> bit & 1)
