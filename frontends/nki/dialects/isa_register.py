"""Calls on registers: numbers known at run time, in words of SBUF that the controller reads and writes."""

from collections.abc import Callable
from typing import Any, NamedTuple

from neuroncore_rtl.frontends.nki.indices.lines import from_kernel
from neuroncore_rtl.frontends.nki.indices.registers import VirtualRegister, register_of
from neuroncore_rtl.frontends.nki.indices.views import View
from neuroncore_rtl.frontends.nki.lowering.loops import element_of, loop_register
from neuroncore_rtl.frontends.nki.lowering.operands import mark_written
from neuroncore_rtl.frontends.nki.trace.recording import recording

__all__ = ["REGISTER_CALLS", "RegisterCall"]


class RegisterCall(NamedTuple):
    """Function of a register call, and its entry in the documentation table (`frontends.nki.dialects.table`)."""

    function: Callable
    how: str
    note: str


@from_kernel
def register_alloc(x: int | None = None) -> VirtualRegister:
    """Return a new register, optionally initialised with a number."""
    current = recording()
    current.flush()
    return loop_register(current, current.program.flow.register(x))


@from_kernel
def register_move(dst: VirtualRegister, src: "int | VirtualRegister | None" = None, imm: Any = None) -> None:
    """Set dst to a number or another register; `imm` is the older name of a number."""
    current = recording()
    current.flush()
    given = imm if src is None else src
    source = given.register if isinstance(given, VirtualRegister) else given
    current.program.flow.set(register_of(dst, "dst"), source)


@from_kernel
def register_load(dst: VirtualRegister, src: View) -> None:
    """Load a register from a one-element tensor."""
    current = recording()
    current.flush()
    current.program.flow.load(register_of(dst, "dst"), element_of(current, src))


@from_kernel
def register_store(dst: View, src: VirtualRegister) -> None:
    """Store a register to a one-element tensor."""
    current = recording()
    current.flush()
    current.own(dst, everything=True)
    current.program.flow.store(element_of(current, dst), register_of(src, "src"))
    mark_written(dst)


REGISTER_CALLS: dict[str, RegisterCall] = {
    "register_alloc": RegisterCall(register_alloc, "exact", "a word of SBUF, which the controller writes"),
    "register_load": RegisterCall(register_load, "differs", "integers; DMA_COPY to the register's word"),
    "register_move": RegisterCall(register_move, "exact", "by the controller, after all previous instructions"),
    "register_store": RegisterCall(register_store, "exact", "DMA_COPY from the register's word"),
}
