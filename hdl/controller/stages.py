"""Pipeline registers of the processor, and the end of an instruction in the execute stage."""

from dataclasses import dataclass
from types import SimpleNamespace

from amaranth import Module, Signal
from amaranth.hdl import ValueLike
from amaranth.lib import enum

from neuroncore_rtl.hdl.controller.csr import Cause
from neuroncore_rtl.hdl.controller.instruction import AluOp, Kind

__all__ = ["EXECUTE", "WRITE_BACK", "End", "Source", "stage"]


class Source(enum.Enum, shape=2):
    """Unit with the result of the instruction in the write-back stage."""

    VALUE = 0
    LOAD = 1
    PRODUCT = 2


EXECUTE = {
    **dict.fromkeys(("pc", "instruction", "a", "b", "base", "offset"), 32),
    "rd": 5,
    "kind": Kind,
    "op": AluOp,
    "interrupt": Cause,
}
"""Registers of the execute stage: an instruction, the ALU's operands, base and offset of an address or target, and the
cause of the interrupt if `kind` is INTERRUPT.
"""

WRITE_BACK = {
    **dict.fromkeys(("pc", "instruction", "value"), 32),
    "rd": 5,
    "source": Source,
    "cause": Cause,
    **dict.fromkeys(("pending", "failed", "interrupt", "counted"), 1),
}
"""Registers of the write-back stage.

value: the result, or mtval if the instruction traps.
cause: mcause if the instruction traps.
pending: a response is outstanding; it may be an error, which makes the instruction trap.
failed: the instruction traps.
counted: the instruction counts in minstret.
"""


def stage(name: str, registers: dict, **wires) -> SimpleNamespace:
    """Return the signals of a pipeline stage: `valid`, registers that are undefined without `valid`, and wires."""
    signals = {"valid": Signal(name=f"{name}_valid")}
    signals |= {field: Signal(shape, name=f"{name}_{field}", reset_less=True) for field, shape in registers.items()}
    signals |= {field: Signal(shape, name=f"{name}_{field}") for field, shape in wires.items()}
    return SimpleNamespace(**signals)


@dataclass
class End:
    """Outcome of an instruction in the execute stage.

    Attributes:
        ready: the instruction can advance to the write-back stage; 1 by default.
        jumps: the instruction jumps to its target; 0 if it traps.
        traps, cause, trap_value: the instruction traps, with this mcause and mtval.
    """

    ready: Signal
    jumps: Signal
    traps: Signal
    cause: Signal
    trap_value: Signal

    @staticmethod
    def create() -> "End":
        """Return new signals for the outcome of an instruction."""
        return End(Signal(init=1), Signal(), Signal(), Signal(Cause), Signal(32))

    def trap(self, m: Module, cause: ValueLike, value: ValueLike | None = None, condition: ValueLike = 1) -> None:
        """Assign a trap with this cause under the condition; mtval is 0 if `value` is None."""
        m.d.comb += [self.traps.eq(condition), self.cause.eq(cause)]
        if value is not None:
            m.d.comb += self.trap_value.eq(value)
