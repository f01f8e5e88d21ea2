"""Amaranth simulator that runs a compiled module instead of a component; testbenches remain unchanged."""

from collections.abc import Sequence

from amaranth.hdl import ClockDomain, Module, Signal
from amaranth.lib import wiring
from amaranth.sim import Simulator
from amaranth.sim._base import BaseProcess
from amaranth.sim.pysim import PySimEngine

from neuroncore_rtl.tb.campaign.mutation.library import Library, MutantModel
from neuroncore_rtl.tb.campaign.mutation.netlist import SELECT_BITS, Port, ports_of

__all__ = ["CONTROLS", "Endless", "unit_stand_in"]

CONTROLS = (Port("clk", 1, True), Port("rst", 1, True), Port("mutant", SELECT_BITS, True))


class Endless(AssertionError):
    """A testbench exceeded its limit of cycles, a multiple of the cycles that it takes with the unchanged component."""


def unit_stand_in(
    component: wiring.Component, library: Library, mutant: int, limit: int, resets: Sequence[Signal] = ()
) -> Simulator:
    """Return a simulator with the compiled library as component; it raises `Endless` after `limit` edges."""
    m = Module()
    m.domains.sync = sync = ClockDomain()

    class Engine(PySimEngine):
        def __init__(self, design):
            super().__init__(design)
            model = library.model()
            model.set("mutant", mutant)
            self.module = _Module(self.state, component, model, limit, sync.clk, (sync.rst, *resets))
            self._processes.add(self.module)

        @property
        def edges(self) -> int:
            return self.module.edges

    return Simulator(m, engine=Engine)


class _Module(BaseProcess):
    """Process that evaluates the module when an input changes; see `unit_stand_in`."""

    def __init__(self, state, component: wiring.Component, model: MutantModel, limit: int, clk: Signal, resets):
        self._model, self._limit, self.edges, self.runnable = model, limit, 0, True
        ports = [(port, state.slots[state.get_signal(signal)]) for port, signal in ports_of(component)]
        self._inputs = [(port.name, slot, (1 << port.width) - 1) for port, slot in ports if port.is_input]
        self._outputs = [(port.name, slot, slot.signal) for port, slot in ports if not port.is_input]
        self._resets, self._clock = ([state.slots[state.get_signal(one)] for one in some] for some in (resets, [clk]))
        self._given = dict.fromkeys((name for name, *_ in self._inputs), 0) | {"rst": 0, "clk": 0}
        for slot in (*(slot for _, slot, _ in self._inputs), *self._resets, *self._clock):
            slot.add_waker(self._wake)

    def _wake(self, before: int, after: int) -> bool:
        self.runnable = True
        return True

    def _give(self, name: str, value: int) -> bool:
        changed = value != self._given[name]
        if changed:
            self._given[name] = value
            self._model.set(name, value)
        return changed

    def run(self) -> None:
        for name, slot, mask in self._inputs:
            self._give(name, slot.curr & mask)
        self._give("rst", int(any(slot.curr for slot in self._resets)))
        if self._give("clk", int(self._clock[0].curr)) and self._given["clk"]:
            self.edges += 1
            if self.edges > self._limit:
                raise Endless(f"the testbench has not ended in {self._limit} cycles")
        self._model.evaluate()
        for name, slot, signal in self._outputs:
            value = self._model.get(name)
            signed = signal._signed and value >> (len(signal) - 1)
            slot.update(value - (1 << len(signal)) if signed else value)
