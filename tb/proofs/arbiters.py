"""Starvation freedom of the arbiters: a request that stays asserted is granted within a bound for all other requests.

A wait is counted only in cycles in which the arbiter can grant a request; cycles of downstream backpressure do not
count.
"""

from amaranth.hdl import Assert, Assume, Module, Mux, Signal, Value

from neuroncore_rtl.hdl.link.router import RouterOutput
from neuroncore_rtl.hdl.memory.bank_arbiter import BankArbiter
from neuroncore_rtl.hdl.memory.line_arbiter import LineReadArbiter
from neuroncore_rtl.hdl.primitives.round_robin import RoundRobin
from neuroncore_rtl.spec.timing import LINE_PATIENCE
from neuroncore_rtl.tb.proofs.proof import Model, Proof
from neuroncore_rtl.tb.proofs.solver import Method

__all__ = ["PROOFS", "BankTurns", "LineTurns", "RouterTurns"]


def wait_of(m: Module, name: str, asks: Value, served: Value, counts: Value, bound: int) -> Signal:
    """Count the cycles in which a request waits, assert that the count is at most `bound`, and return the count.

    Only cycles with `counts` set are counted: in these the arbiter can serve a request. The request `asks` is assumed
    to stay asserted until it is served.
    """
    wait = Signal(range(bound + 2), name=f"{name}_wait")
    waits = Signal(name=f"{name}_waits")
    with m.If(~asks | served):
        m.d.sync += wait.eq(0)
    with m.Elif(counts & (wait <= bound)):
        m.d.sync += wait.eq(wait + 1)
    m.d.sync += waits.eq(asks & ~served)
    m.d.comb += [Assume(~waits | asks), Assert(wait <= bound)]
    return wait


class Turns(Model):
    """Round robin, by induction: only requests are granted, after at most one grant of each other requester."""

    def __init__(self, count: int):
        self.count = count
        self.bound = count - 1
        super().__init__(RoundRobin(count))

    def properties(self, m: Module) -> None:
        unit, count = self.unit, self.count
        granted, last = Signal(count), Signal(range(count), init=count - 1)  # last: the previous grant
        m.d.comb += [
            granted.eq(unit.requests.any() << unit.grant),
            Assert((granted & ~unit.requests) == 0),
            Assume(~unit.taken | unit.requests.any()),
        ]
        with m.If(unit.taken):
            m.d.sync += last.eq(unit.grant)
        # Induction needs the meaning of the register, and that each grant to another request brings this grant closer.
        m.d.comb += Assert(last < count)
        m.d.comb += Assert(unit.behind == Mux(last == count - 1, 0, (-2 << last)[:count]))
        for number in range(count):
            served = granted[number] & unit.taken
            wait = wait_of(m, f"asker{number}", unit.requests[number], served, unit.taken, self.bound)
            others = Signal(range(count), name=f"others{number}")  # between the previous grant and this request
            m.d.comb += others.eq(Mux(last < number, number - last - 1, number + count - last - 1))
            m.d.comb += Assert(wait + others <= self.bound)


class BankTurns(Model):
    """Bank arbiter, bounded proof: a line port has priority after LINE_PATIENCE cycles.

    With priority it waits only for other line ports. An engine's wait has no bound, as engines of higher rank may
    request in every cycle.
    """

    def __init__(self, engines: int = 1, lines: int = 2, banks: int = 2):
        self.bound = LINE_PATIENCE + lines - 1
        super().__init__(BankArbiter(engines, lines, banks))

    def properties(self, m: Module) -> None:
        unit = self.unit
        turn = Signal.like(unit.turn)
        m.d.sync += turn.eq(Mux(turn == unit.lines - 1, 0, turn + 1))
        m.d.comb += Assume(unit.turn == turn)
        for line in range(unit.lines):
            number = unit.engines + line
            asks, bank = unit.requests[number], unit.banks[number]
            served = asks & ~unit.stalls[number]
            waits, before = Signal(name=f"stays{line}"), Signal.like(bank, name=f"bank{line}")
            m.d.sync += [waits.eq(asks & ~served), before.eq(bank)]
            m.d.comb += Assume(~waits | (bank == before))
            wait_of(m, f"line{line}", asks, served, ~unit.held_up, self.bound)


class LineTurns(Model):
    """Line arbiter, bounded proof: a request waits for at most one access of each other client."""

    def __init__(self, count: int = 3):
        self.bound = count - 1
        super().__init__(LineReadArbiter(8, count))

    def properties(self, m: Module) -> None:
        unit = self.unit
        for number, one in enumerate(unit.requesters):
            wait_of(m, f"user{number}", one.valid, one.valid & one.ready, unit.port.ready, self.bound)


class RouterTurns(Model):
    """Router output, bounded proof: bounds on the waits of passing flits and of this chip's flits.

    A passing flit waits for one flit of each other passing input and for one flit of this chip. A flit of this chip
    waits for the flits of this chip before it, and for SHARE - 1 passing flits before each flit of this chip.
    """

    def __init__(self, passing: int = 2, own: int = 2):
        self.own_bound = RouterOutput.SHARE * own - 1
        self.passing_bound = passing
        super().__init__(RouterOutput(passing, own, 1))

    def properties(self, m: Module) -> None:
        unit = self.unit
        space = ~unit.o.valid | unit.o.ready
        for number in range(len(unit.requests)):
            bound = self.passing_bound if number < unit.passing else self.own_bound
            wait_of(m, f"input{number}", unit.requests[number], unit.taken[number], space, bound)


PROOFS = (
    *(Proof(f"round robin of {n}", lambda n=n: Turns(n), 2, Method.INDUCTION) for n in (1, 2, 3, 5, 8)),
    Proof("banks of SBUF and PSUM", BankTurns, LINE_PATIENCE + 8),
    Proof("shared line port", LineTurns, 12),
    Proof("output of a router", RouterTurns, 2 * RouterOutput.SHARE + 6),
)
