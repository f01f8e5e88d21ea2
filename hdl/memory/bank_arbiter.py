"""Bank arbiter: fixed priority for engines, round robin for line ports, aging after LINE_PATIENCE cycles."""

from collections.abc import Iterable
from functools import reduce
from operator import or_

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.spec.timing import LINE_PATIENCE

__all__ = ["BankArbiter", "one_of"]


class BankArbiter(wiring.Component):
    """Grants each bank to one of its requesters.

    Arguments:
        engines: number of engines; lower numbers have priority.
        lines: number of line ports; urgent after `LINE_PATIENCE` stalled cycles.
        places: number of banks.
        early: engines stall while any line port is urgent, whatever its bank, so that their grants do not depend on the
            line ports' requests of this cycle.

    Ports:
        requests: one bit per requester: first the engines, then the line ports.
        banks: for each requester, the bank that it requests.
        turn: index of the line port with priority over equally urgent ones; in each cycle the next index.
        held_up: the memory accepts no request in this cycle, even if granted.
        grants: one bit per requester, set when it has priority at its bank.
        urgent: a granted line port is urgent; with `early`, any line port is.
        stalls: one bit per requester, set when the request is not accepted in this cycle.
    """

    def __init__(self, engines: int, lines: int, places: int, early: bool = False):
        self.early = early
        self.engines = engines
        self.lines = lines
        count = engines + lines
        super().__init__(
            {
                "requests": In(count),
                "banks": In(range(places)).array(count),
                "turn": In(range(max(2, lines))),
                "held_up": In(1),
                "grants": Out(count),
                "urgent": Out(1),
                "stalls": Out(count),
            }
        )

    def elaborate(self, platform):
        m = Module()
        count = self.engines + self.lines
        self._urgent = Signal(self.lines)
        for line in range(self.lines):
            waited = Signal(range(LINE_PATIENCE + 1), name=f"waited{line}")
            m.d.comb += self._urgent[line].eq(waited == LINE_PATIENCE)
            with m.If(~self.stalls[self.engines + line]):
                m.d.sync += waited.eq(0)
            with m.Elif(~self._urgent[line]):
                m.d.sync += waited.eq(waited + 1)

        for number in range(count):
            others = range(self.engines if self.early and number < self.engines else count)
            ahead = [
                self.requests[other] & (self.banks[other] == self.banks[number]) & self._precedes(other, number)
                for other in others
                if other != number
            ]
            if len(others) < count:
                ahead.append(self._urgent.any())
            m.d.comb += self.grants[number].eq(self.requests[number] & ~Cat(*ahead).any())
        urgent = self._urgent if self.early else self.grants[self.engines :] & self._urgent
        m.d.comb += self.urgent.eq(urgent.any())
        m.d.comb += self.stalls.eq(self.requests & ~Mux(self.held_up, 0, self.grants))
        return m

    def _precedes(self, first: int, second: int) -> Value | int:
        if first > second:
            before = self._precedes(second, first)
            return ~before if isinstance(before, Value) else not before
        if second < self.engines:
            return True
        if first < self.engines:
            return ~self._urgent[second - self.engines]
        first, second = first - self.engines, second - self.engines
        own_turn = ~self.turn.matches(*range(first + 1, second + 1))
        urgent = self._urgent
        return Mux(urgent[first] == urgent[second], own_turn, urgent[first])


def one_of(chosen: Value, values: Iterable[Value]) -> Value:
    """Return the value that the one-hot `chosen` selects; 0 if no bit is set."""
    return reduce(or_, (Mux(bit, value, 0) for bit, value in zip(chosen, values, strict=True)))
