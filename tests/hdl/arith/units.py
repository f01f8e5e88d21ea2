"""Comparisons of feed-forward units with golden, for a few cases or for many."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache

import numpy as np
from amaranth import Value

from neuroncore_rtl.run.harness.player import Playable, PlayerDevice, PlayerWork
from neuroncore_rtl.run.harness.run import run_device
from tests.hdl.simulation import simulate

__all__ = ["assert_same", "differences", "faulty_wire", "play", "run", "shuffled"]


def run(unit, cases: Mapping[str, Sequence[int]], output: str = "out", latency: int | None = None) -> list[int]:
    """Return the output of every case in Amaranth's simulator; one case enters per cycle."""
    latency = unit.latency if latency is None else latency
    ports = [Value.cast(getattr(unit, name)) for name in cases]
    rows = list(zip(*cases.values(), strict=True))
    assert rows, "a test must compare something"
    out = Value.cast(getattr(unit, output))

    async def bench(ctx):
        results = []
        for cycle in range(len(rows) + latency):
            for port, value in zip(ports, rows[min(cycle, len(rows) - 1)], strict=True):
                ctx.set(port, int(value))
            if latency == 0:
                results.append(ctx.get(out))
            await ctx.tick()
            if latency and cycle + 1 >= latency:
                results.append(ctx.get(out))
        return results[: len(rows)]

    return simulate(unit, bench)


def shuffled(rng: np.random.Generator, parts: Sequence[tuple], names: Sequence[str]) -> tuple[dict, np.ndarray]:
    """Return cases in random order, and the expected words.

    Each element of `parts` has for each name an array, or a number for all its cases, and then the expected words.
    """
    columns = zip(*(np.broadcast_arrays(*map(np.atleast_1d, part)) for part in parts), strict=True)
    *fields, expected = (np.concatenate(column).astype(np.uint32) for column in columns)
    order = rng.permutation(len(expected))
    return {name: field[order] for name, field in zip(names, fields, strict=True)}, expected[order]


@cache
def _device(unit: Playable, mutate: Callable | None) -> PlayerDevice:
    return PlayerDevice(unit, mutate)


def play(
    unit: Playable, cases: Mapping[str, np.ndarray], sim: str, mutate: Callable | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the results of a unit, and the indices of results with unknown bits; `mutate` changes its Verilog."""
    memories = run_device(_device(unit, mutate), PlayerWork(fields=cases, bubbles=True), sim=sim).memories
    return memories["results"], memories["unknown"]


def differences(
    unit: Playable, cases: Mapping[str, np.ndarray], expected: np.ndarray, sim: str, mutate: Callable | None = None
) -> np.ndarray:
    """Return the indices of cases with a wrong result; fail if a result is missing or unknown."""
    results, unknown = play(unit, cases, sim, mutate)
    assert len(results) == len(expected) > 0
    assert not len(unknown)
    return np.flatnonzero(results != expected)


def assert_same(unit: Playable, cases: Mapping[str, np.ndarray], expected: np.ndarray, sim: str) -> None:
    wrong = differences(unit, cases, expected, sim)
    first = {name: f"{column[number]:x}" for number in wrong[:1] for name, column in cases.items()}
    assert not wrong.size, f"{wrong.size} of {len(expected)} differ, the first: {first}, not {expected[wrong[0]]:x}"


def faulty_wire(name: str, expression: str) -> Callable[[str], str]:
    """Return a mutation that assigns `expression` to the wire `name`; {} stands for the correct value."""

    def mutate(text: str) -> str:
        wire = re.compile(rf"^( +assign {name} = )(.*);$", re.MULTILINE)
        changed, count = wire.subn(lambda match: f"{match[1]}{expression.format(match[2])};", text)
        assert count == 1, f"{count} wires are named {name}"
        return changed

    return mutate
