"""What the checkers of all engines share: legal instructions pass, an illegal one stops everything behind it."""

from collections.abc import Mapping
from functools import reduce
from operator import or_

from amaranth import Const, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.primitives.engine_error import EngineError
from neuroncore_rtl.spec.isa import Rule

__all__ = ["Checker", "lowest_rule"]


class Checker(wiring.Component):
    """Judges instructions by the rules of `spec.isa`, and makes jobs of the legal ones.

    Arguments:
        instruction, job: layouts of what comes and of what goes on.
        inputs: members besides, by name.

    Ports:
        i: instructions; none is taken after an error.
        o: the legal ones, in order.
        error: the first illegal one: the lowest rule that it breaks, and how many came before it, which is 0 where the
            engine counts them itself. Stays until reset.
        busy: an instruction is in the checker; those that wait at o count, those that wait at i do not.
    """

    NUMBERS = True
    """Whether instructions are counted here."""

    def __init__(self, instruction, job, **inputs: wiring.Member):
        super().__init__(
            {
                "i": In(stream.Signature(instruction)),
                "o": Out(stream.Signature(job)),
                "error": Out(EngineError),
                "busy": Out(1),
                **inputs,
            }
        )

    @property
    def latency(self) -> int:
        """Cycles from an instruction at i to o, or to the error."""
        return self.LATENCY

    def refuse(self, m: Module, illegal: Value, cause: Value) -> None:
        """Report the instruction that was taken last, at the end of a cycle in which it is found to be illegal."""
        reports = [self.error.valid.eq(1), self.error.cause.eq(cause)]
        if self.NUMBERS:
            taken = Signal(32)
            with m.If(self.i.valid & self.i.ready):
                m.d.sync += taken.eq(taken + 1)
            reports.append(self.error.number.eq(taken - 1))
        with m.If(illegal):
            m.d.sync += reports


def lowest_rule(m: Module, broken: Mapping[Rule, Value]) -> Signal:
    """Return the lowest rule that is broken, 0 if none is."""
    cause = Signal(range(max(broken) + 1))
    lower, lowest = Const(0), []
    for rule in sorted(broken):
        # What is known late goes through few levels of logic, whichever rule it is.
        lowest.append(Mux(broken[rule] & ~lower, int(rule), 0))
        lower = lower | broken[rule]
    m.d.comb += cause.eq(reduce(or_, lowest))
    return cause
