"""What the tests of feed-forward units share: any unit made playable, and a comparison in bulk."""

import re
from collections.abc import Callable

import numpy as np
from amaranth import Module, Value
from amaranth.lib import data

from neuroncore_rtl.tb.harness.player import Playable, PlayerDevice, PlayerWork
from neuroncore_rtl.tb.harness.run import run

__all__ = ["PlayedUnit", "differences", "faulty_wire"]


class PlayedUnit(Playable):
    """A component of a known latency with its inputs in one word, in the order of their names here.

    Arguments:
        unit: the component.
        inputs: names of its input ports. `out` is its output.
    """

    def __init__(self, unit, inputs: tuple[str, ...]):
        self.unit = unit
        self.inputs = inputs
        layout = {name: len(Value.cast(getattr(unit, name))) for name in inputs}
        super().__init__(data.StructLayout(layout), unit.latency)

    def elaborate(self, platform):
        m = Module()
        m.submodules.unit = unit = self.unit
        m.d.comb += [Value.cast(getattr(unit, name)).eq(self.word[name]) for name in self.inputs]
        m.d.comb += self.result.eq(unit.out)
        self.delay_valid(m)
        return m


def differences(
    unit: Playable, cases: dict[str, np.ndarray], expected: np.ndarray, sim: str, mutate: Callable | None = None
) -> np.ndarray:
    """Return the numbers of the cases whose result is not the expected one; fail if a result is missing or unknown."""
    outcome = run(PlayerDevice(unit, mutate), PlayerWork(fields=cases, bubbles=True), sim=sim)
    results = outcome.memories["results"]
    assert len(results) == len(expected) > 0
    assert not len(outcome.memories["unknown"])
    return np.flatnonzero(results != expected)


def faulty_wire(name: str, expression: str) -> Callable[[str], str]:
    """Return a mutation that assigns `expression` to the one wire `name`; in it {} is what the wire should be."""

    def mutate(text: str) -> str:
        changed, count = re.subn(
            rf"^( +assign {name} = )(.*);$",
            lambda match: f"{match[1]}{expression.format(match[2])};",
            text,
            flags=re.MULTILINE,
        )
        assert count == 1, f"{count} wires are called {name}"
        return changed

    return mutate
