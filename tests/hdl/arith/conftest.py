"""One way to run a feed-forward unit: a case enters each cycle, its result is read `latency` cycles later."""

import pytest
from amaranth import Value

from tests.hdl.simulation import simulate


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

    simulate(unit, bench)
    return results[: len(cases)]


@pytest.fixture
def run():
    """The runner: run(unit, cases, output="out") -> list of integers."""
    return _run


@pytest.fixture
def vectors(tmp_path):
    """Write a vector file and return its path."""

    def write(text):
        path = tmp_path / "vectors.txt"
        path.write_text(text)
        return path

    return write
