"""What a proof is, and what the models of all have in common: inputs that are free, and constants that are any."""

from collections.abc import Callable
from dataclasses import dataclass

from amaranth.hdl import Assume, Const, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from neuroncore_rtl.tb.proofs.solver import Method

__all__ = ["Model", "Proof", "stay", "stream_stays"]


@dataclass(frozen=True)
class Proof:
    """A property of a unit.

    Arguments:
        name: of it, in a few words.
        model: makes the unit with its assertions and assumptions.
        depth, method: as of :func:`tb.proofs.solver.prove`.
    """

    name: str
    model: Callable[[], wiring.Component]
    depth: int
    method: Method = Method.BOUNDED


class Model(wiring.Component):
    """A unit whose inputs are all free; the base of the models, which add what is assumed and what must hold.

    Arguments:
        unit: it.
        constants: further inputs that have any value, always the same: their widths by name.
    """

    def __init__(self, unit: wiring.Component, **constants: int):
        self.unit = unit
        self.constants = constants
        self._free = {
            "_".join(map(str, ("unit", *path))): Value.cast(value)
            for path, member, value in unit.signature.flatten(unit)
            if member.flow == In and not isinstance(value, Const)
        }
        widths = {name: len(value) for name, value in self._free.items()} | constants
        super().__init__({name: In(width) for name, width in widths.items()})

    def elaborate(self, platform):
        m = Module()
        m.submodules.unit = self.unit
        m.d.comb += [value.eq(getattr(self, name)) for name, value in self._free.items()]
        for name in self.constants:
            stay(m, getattr(self, name))
        self.properties(m)
        return m

    def properties(self, m: Module) -> None:
        """Add assumptions and assertions."""
        raise NotImplementedError


def stay(m: Module, constant: Value) -> None:
    """Let an input have any value, always the same."""
    begun, before = Signal(), Signal.like(constant)
    m.d.sync += [begun.eq(1), before.eq(constant)]
    with m.If(begun):
        m.d.comb += Assume(constant == before)


def stream_stays(m: Module, stream, check=Assume) -> None:
    """Let what a stream offers stay as it is until it is taken."""
    payload = Value.cast(stream.payload)
    waits, before = Signal(), Signal(len(payload))
    m.d.sync += [waits.eq(stream.valid & ~stream.ready), before.eq(payload)]
    with m.If(waits):
        m.d.comb += [check(stream.valid), check(payload == before)]
