"""Base class of the engines' checkers: legal instructions pass; the first illegal one blocks all after it."""

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
    """Checker that validates instructions by the rules of `spec.isa` and makes jobs of the legal ones.

    Arguments:
        instruction, job: layouts of an instruction and of a job.
        inputs: additional input ports, by name.

    Ports:
        i: instructions; not ready after an error.
        o: jobs, in order.
        error: lowest rule that the first illegal instruction breaks, and the number of instructions before it (0 if the
            engine counts them itself). Held until reset.
        busy: an instruction is in the checker, or its job stalls at `o`.
    """

    NUMBERS = True
    """Whether the checker counts instructions for `error`."""

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
        return self.LATENCY

    def refuse(self, m: Module, illegal: Value, cause: Value) -> None:
        """Report the last accepted instruction as illegal, at the end of a cycle in which `illegal` is set."""
        reports = [self.error.valid.eq(1), self.error.cause.eq(cause)]
        if self.NUMBERS:
            taken = Signal(32)
            with m.If(self.i.valid & self.i.ready):
                m.d.sync += taken.eq(taken + 1)
            reports.append(self.error.number.eq(taken - 1))
        with m.If(illegal):
            m.d.sync += reports


def lowest_rule(m: Module, broken: Mapping[Rule, Value]) -> Signal:
    """Return the number of the lowest rule that is broken; 0 if none is."""
    cause = Signal(range(max(broken) + 1))
    lower, lowest = Const(0), []
    for rule in sorted(broken):
        # AND-OR selection: a late condition passes through few levels of logic, whichever rule it belongs to.
        lowest.append(Mux(broken[rule] & ~lower, int(rule), 0))
        lower = lower | broken[rule]
    m.d.comb += cause.eq(reduce(or_, lowest))
    return cause
