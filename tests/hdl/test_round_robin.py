"""Turns go round among those who ask."""

import random

import pytest

from neuroncore_rtl.hdl.round_robin import RoundRobin
from tests.hdl.simulation import simulate


def grants(count: int, asked: list[tuple[int, bool]]) -> list[int]:
    """Return whom each of the given (requests, taken) grants."""
    dut = RoundRobin(count)
    found = []

    async def bench(ctx):
        for requests, taken in asked:
            ctx.set(dut.requests, requests)
            ctx.set(dut.taken, taken)
            *_, grant = await ctx.tick().sample(dut.grant)
            found.append(grant)

    simulate(dut, bench)
    return found


@pytest.mark.parametrize("count", [1, 2, 3, 8, 19])
def test_the_next_one_that_asks(count):
    rng = random.Random(count)
    asked = [(rng.randrange(1, 1 << count), rng.random() < 0.7) for _ in range(300)]
    last, expected = count - 1, []
    for requests, taken in asked:
        turn = next(n for n in (*range(last + 1, count), *range(last + 1)) if requests >> n & 1)
        expected.append(turn)
        last = turn if taken else last
    assert grants(count, asked) == expected
