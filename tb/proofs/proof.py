"""Proof record, and the base of the models: a unit with free inputs and arbitrary constants."""

from collections.abc import Callable
from dataclasses import dataclass

from amaranth.hdl import Assume, Const, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from neuroncore_rtl.tb.proofs.solver import Method, SolverVerdict, prove

__all__ = ["Model", "Proof", "nth_payload", "stay", "stream_stays"]


@dataclass(frozen=True)
class Proof:
    """A property of a unit. `model` makes the unit with its assertions; for `depth` and `method` see `solver.prove`."""

    name: str
    model: Callable[[], wiring.Component]
    depth: int
    method: Method = Method.BOUNDED

    def run(self, depth: int, timeout: float) -> SolverVerdict:
        return prove(self.model(), depth, self.method, timeout=timeout)


class Model(wiring.Component):
    """A unit with free inputs, and an arbitrary constant for each name in `constants`, with its width in bits."""

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
        raise NotImplementedError


def stay(m: Module, constant: Value) -> None:
    """Assume that an input has the same arbitrary value in all cycles."""
    started, before = Signal(), Signal.like(constant)
    m.d.sync += [started.eq(1), before.eq(constant)]
    with m.If(started):
        m.d.comb += Assume(constant == before)


def stream_stays(m: Module, stream, check=Assume) -> None:
    """Assume, or check, that a valid payload stays until it is accepted."""
    payload = Value.cast(stream.payload)
    waits, before = Signal(), Signal(len(payload))
    m.d.sync += [waits.eq(stream.valid & ~stream.ready), before.eq(payload)]
    with m.If(waits):
        m.d.comb += [check(stream.valid), check(payload == before)]


def nth_payload(m: Module, moves: Value, payload: Value, number: Value, name: str) -> tuple[Signal, Signal]:
    """Return the count of transfers so far, as wide as `number`, and the payload of the transfer of index `number`."""
    count, kept = Signal(len(number), name=name), Signal.like(payload, name=f"{name}_payload")
    with m.If(moves):
        m.d.sync += count.eq(count + 1)
        with m.If(count == number):
            m.d.sync += kept.eq(payload)
    return count, kept
