"""Who gets a bank: those with a rank, then the others in turn, unless one of these has waited for too long."""

from collections.abc import Iterable
from functools import reduce
from operator import or_

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.spec import timing

__all__ = ["LINE_PATIENCE", "BankArbiter", "one_of"]

LINE_PATIENCE = timing.LINE_PATIENCE
"""Cycles that who goes in turn waits before it goes first, so that no engine can shut it out."""


class BankArbiter(wiring.Component):
    """Grants each bank to one of those who ask for it.

    Arguments:
        engines: requesters of fixed rank, the lowest number first.
        lines: requesters behind them, that go in turn and are patient for `LINE_PATIENCE` cycles.
        places: banks.
        early: engines wait for a line that has lost its patience, whatever its bank: what they are granted does not
            depend on what lines ask for in this cycle.

    Ports:
        requests: a bit for each requester, the engines' first. banks: what each asks for.
        grants: a bit for each that goes ahead of all others who ask for its bank.
        urgent: one of the lines that are granted has lost its patience; `early`: one of all lines has.
        turn: the line port that goes first of those that are as urgent; counts through all of them, cycle by cycle.
        held_up: what is granted cannot be taken in this cycle.
        stalls: a bit for each whose request is not taken in this cycle.
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
        """Return whether a requester goes before another one that asks for the same bank: an order of all of them."""
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
    """Return the value whose bit is set, of which there is at most one; else 0."""
    return reduce(or_, (Mux(bit, value, 0) for bit, value in zip(chosen, values, strict=True)))
