"""The registers of the processor's stages, and how an instruction ends in the execute stage."""

from dataclasses import dataclass
from types import SimpleNamespace

from amaranth import Module, Signal
from amaranth.hdl import ValueLike
from amaranth.lib import enum

from neuroncore_rtl.hdl.controller.csr import Cause
from neuroncore_rtl.hdl.controller.instruction import AluOp, Kind

__all__ = ["EXECUTE", "WRITE_BACK", "End", "Source", "stage"]


class Source(enum.Enum, shape=2):
    """Where a result is in the write-back stage."""

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
"""Registers of the execute stage: an instruction, the ALU's operands, what adds up to an address or target, and which
interrupt it is if kind says so."""

WRITE_BACK = {
    **dict.fromkeys(("pc", "instruction", "value"), 32),
    "rd": 5,
    "source": Source,
    "cause": Cause,
    **dict.fromkeys(("pending", "failed", "interrupt", "counted"), 1),
}
"""Registers of the write-back stage: value is the result, or mtval of the trap if it comes to one, cause its mcause;
failed means that it does, and pending that a response is awaited, which may be an error. counted: by minstret."""


def stage(name: str, registers: dict, **wires) -> SimpleNamespace:
    """Return the signals of a stage: valid, registers that mean nothing without it, and wires."""
    signals = {"valid": Signal(name=f"{name}_valid")}
    signals |= {field: Signal(shape, name=f"{name}_{field}", reset_less=True) for field, shape in registers.items()}
    signals |= {field: Signal(shape, name=f"{name}_{field}") for field, shape in wires.items()}
    return SimpleNamespace(**signals)


@dataclass
class End:
    """How an instruction leaves the execute stage.

    Attributes:
        ready: it can; unless said otherwise at once.
        jumps: fetching goes on at its target; not with traps.
        traps, cause, trap_value: in a trap, with mcause and mtval.
    """

    ready: Signal
    jumps: Signal
    traps: Signal
    cause: Signal
    trap_value: Signal

    @staticmethod
    def create() -> "End":
        """Return its signals."""
        return End(Signal(init=1), Signal(), Signal(), Signal(Cause), Signal(32))

    def trap(self, m: Module, cause: ValueLike, value: ValueLike | None = None, condition: ValueLike = 1) -> None:
        """Let it end in a trap if a condition holds; without a value mtval is 0."""
        m.d.comb += [self.traps.eq(condition), self.cause.eq(cause)]
        if value is not None:
            m.d.comb += self.trap_value.eq(value)
