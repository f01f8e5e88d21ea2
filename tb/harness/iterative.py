"""Units that take several cycles a result, made playable."""

import numpy as np
from amaranth import Module
from amaranth.lib import data, wiring

from neuroncore_rtl.tb.harness.player import Playable, PlayerDevice, PlayerWork
from neuroncore_rtl.tb.harness.run import run

__all__ = ["IterativeUnit", "play_pairs"]


class IterativeUnit(Playable):
    """A unit with the ports start, a, b, out, and the constants INTERVAL and LATENCY, with its inputs in one word."""

    def __init__(self, unit: wiring.Component):
        self.unit = unit
        super().__init__(data.StructLayout({"a": 32, "b": 32}), unit.LATENCY, unit.INTERVAL)

    def elaborate(self, platform):
        m = Module()
        m.submodules.unit = unit = self.unit
        m.d.comb += [
            unit.start.eq(self.valid),
            unit.a.eq(self.word.a),
            unit.b.eq(self.word.b),
            self.result.eq(unit.out),
        ]
        self.delay_valid(m)
        return m


def play_pairs(unit: wiring.Component, a: np.ndarray, b: np.ndarray, sim: str) -> np.ndarray:
    """Return the unit's results for pairs of FP32 patterns, with random idle cycles between them.

    Raises:
        AssertionError: if there are more or fewer results than pairs, or if one has unknown bits.
    """
    outcome = run(PlayerDevice(IterativeUnit(unit)), PlayerWork(fields={"a": a, "b": b}, bubbles=True), sim=sim)
    results, unknown = outcome.memories["results"], outcome.memories["unknown"]
    assert len(results) == len(a) and not len(unknown), (
        f"{len(results)} results for {len(a)} pairs, {len(unknown)} unknown"
    )
    return results
