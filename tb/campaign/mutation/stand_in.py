"""Compiled module in place of a component: in Amaranth's simulator, and for cases of `run.harness.player`."""

from collections.abc import Mapping, Sequence

import numpy as np
from amaranth.hdl import ClockDomain, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.sim import Simulator
from amaranth.sim._base import BaseProcess
from amaranth.sim.pysim import PySimEngine

from neuroncore_rtl.run.harness.outcome import Ending, Outcome
from neuroncore_rtl.run.harness.player import Playable, PlayedUnit, pack_inputs
from neuroncore_rtl.tb.campaign.mutation.library import MutantModel
from neuroncore_rtl.tb.campaign.mutation.netlist import SELECT_BITS, Port, ports_of

__all__ = ["CONTROLS", "Endless", "play", "unit_stand_in"]

_BUBBLES = 0.25  # share of cycles without a case
_TAIL = 256
CONTROLS = (Port("clk", 1, True), Port("rst", 1, True), Port("mutant", SELECT_BITS, True))


class Endless(AssertionError):
    """A testbench exceeded its limit of cycles, a multiple of the cycles that it takes with the unchanged component."""


def unit_stand_in(
    component: wiring.Component, model: MutantModel, limit: int, resets: Sequence[Signal] = ()
) -> Simulator:
    """Return a simulator with the compiled model as component; it raises `Endless` after `limit` edges.

    Testbenches remain unchanged.
    """
    m = Module()
    m.domains.sync = sync = ClockDomain()

    class Engine(PySimEngine):
        def __init__(self, design):
            super().__init__(design)
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


def play(unit: Playable, model: MutantModel, fields: Mapping[str, np.ndarray], bubbles: bool) -> Outcome:
    """Play cases (see `PlayerWork`) through the netlist of a unit."""
    count = len(next(iter(fields.values())))
    idle = np.random.default_rng(1).random(2 * count) < _BUBBLES * bubbles
    starts = np.flatnonzero(~idle)[:count] * unit.interval
    cycles = int(starts[-1]) + unit.latency + _TAIL
    valid = np.zeros(cycles, bool)
    valid[starts] = True
    latest = np.maximum(np.cumsum(valid) - 1, 0)
    play_cases = _of_inner if isinstance(unit, PlayedUnit) else _of_itself
    words = play_cases(unit, model, fields, valid, latest)
    return Outcome(ending=Ending.FINISHED, cycles=0, memories={"results": words, "unknown": np.zeros(0, np.int64)})


def _of_inner(unit: PlayedUnit, model: MutantModel, fields, valid, latest) -> np.ndarray:
    names = _names(unit.unit)
    given = {}
    for name, values in fields.items():
        column = np.where(valid, values[latest], ~values[latest]).astype("<u4")
        column = np.concatenate([np.zeros(unit.late.get(name, 0), "<u4"), column])[: len(column)]
        width = len(Value.cast(getattr(unit.unit, name)))
        column &= np.uint32((1 << width) - 1)
        size = next(size for size in (1, 2, 4) if width <= 8 * size)
        given[names[name]] = column.view(np.uint8).reshape(-1, 4)[:, :size]
    if unit.iterative:
        given[names["start"]] = valid.astype(np.uint8)[:, None]
    (shown,) = model.trace(given, [names[unit.output]]).T
    return shown[np.flatnonzero(valid) + unit.latency]


def _of_itself(unit: Playable, model: MutantModel, fields, valid, latest) -> np.ndarray:
    names = _names(unit)
    words = pack_inputs(unit.layout, **fields)[:, ::-1][latest]
    words = np.where(valid[:, None], words, ~words)
    words[:, -1] &= 0xFF >> (-unit.layout.size % 8)
    given = {names["word"]: words, names["valid"]: valid.astype(np.uint8)[:, None]}
    results, shown = model.trace(given, [names["result"], names["result_valid"]]).T
    return results[shown == 1]


def _names(component) -> dict[str, str]:
    signals = {id(signal): port.name for port, signal in ports_of(component)}
    members = component.signature.members
    return {name: signals.get(id(Value.cast(getattr(component, name)))) for name in members if members[name].is_port}
