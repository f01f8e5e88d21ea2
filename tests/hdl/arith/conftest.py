"""One way to run a feed-forward unit: a case enters each cycle, its result is read `latency` cycles later."""

import numpy as np
import pytest
from amaranth import Elaboratable, Module, Signal, Value
from amaranth.sim import Simulator

SEED = 20260401
"""Of every random test here; the same in each run."""


class _Clocked(Elaboratable):
    """Gives a combinational unit a clock, so that one runner serves all."""

    def __init__(self, unit):
        self.unit = unit

    def elaborate(self, platform):
        m = Module()
        m.submodules.unit = self.unit
        tick = Signal()
        m.d.sync += tick.eq(~tick)
        return m


def _run(unit, cases, output="out"):
    """Return the output of every case, in order, as integers; each case maps port names to integers."""
    assert cases, "a test must compare something"
    ports = {name: Value.cast(getattr(unit, name)) for name in cases[0]}
    out = Value.cast(getattr(unit, output))
    results = []

    async def bench(ctx):
        for cycle in range(len(cases) + unit.latency):
            for name, value in cases[min(cycle, len(cases) - 1)].items():
                ctx.set(ports[name], int(value))
            if unit.latency == 0:
                results.append(ctx.get(out))
            await ctx.tick()
            if unit.latency and cycle + 1 >= unit.latency:
                results.append(ctx.get(out))

    simulator = Simulator(_Clocked(unit))
    simulator.add_clock(1e-9)
    simulator.add_testbench(bench)
    simulator.run()
    return results[: len(cases)]


@pytest.fixture
def run():
    """The runner: run(unit, cases, output="out") -> list of integers."""
    return _run


@pytest.fixture
def rng():
    """A generator with a printed seed."""
    print(f"seed {SEED}")
    return np.random.default_rng(SEED)
