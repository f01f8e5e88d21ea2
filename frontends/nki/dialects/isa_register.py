"""Calls on registers: numbers that the run knows, in words of SBUF that the controller reads and writes."""

from collections.abc import Callable
from typing import Any, NamedTuple

from neuroncore_rtl.frontends.nki.indices.lines import from_kernel
from neuroncore_rtl.frontends.nki.indices.registers import VirtualRegister, register_of
from neuroncore_rtl.frontends.nki.indices.views import View
from neuroncore_rtl.frontends.nki.lowering.loops import element_of, held
from neuroncore_rtl.frontends.nki.lowering.operands import written
from neuroncore_rtl.frontends.nki.trace.recording import recording

__all__ = ["REGISTER_CALLS", "RegisterCall"]


class RegisterCall(NamedTuple):
    """A call: what kernels call, and what the table says of it."""

    function: Callable
    how: str
    note: str


@from_kernel
def register_alloc(x: int | None = None) -> VirtualRegister:
    """Return a new register, with a number if one is given."""
    current = recording()
    current.flush()
    return held(current, current.program.flow.register(x))


@from_kernel
def register_move(dst: VirtualRegister, src: "int | VirtualRegister | None" = None, imm: Any = None) -> None:
    """Dst = src, a number or another register; imm: a number, as it was called before."""
    current = recording()
    current.flush()
    given = imm if src is None else src
    source = given.register if isinstance(given, VirtualRegister) else given
    current.program.flow.set(register_of(dst, "dst"), source)


@from_kernel
def register_load(dst: VirtualRegister, src: View) -> None:
    """Dst = the one integer of a tensor."""
    current = recording()
    current.flush()
    current.program.flow.load(register_of(dst, "dst"), element_of(current, src))


@from_kernel
def register_store(dst: View, src: VirtualRegister) -> None:
    """The one integer of a tensor = src."""
    current = recording()
    current.flush()
    current.program.flow.store(element_of(current, dst), register_of(src, "src"))
    written(current.resolved(dst))


REGISTER_CALLS: dict[str, RegisterCall] = {
    "register_alloc": RegisterCall(register_alloc, "exact", "a word of SBUF, which the controller writes"),
    "register_load": RegisterCall(register_load, "differs", "integers; DMA_COPY to the register's word"),
    "register_move": RegisterCall(register_move, "exact", "by the controller, when all before has finished"),
    "register_store": RegisterCall(register_store, "exact", "DMA_COPY from the register's word"),
}
"""The calls of this module."""
