"""Turns go round among those who ask."""

import random

import pytest

from neuroncore_rtl.hdl.round_robin import RoundRobin
from tests.hdl.simulation import drive, next_turn, simulated


@pytest.mark.parametrize("count", [1, 2, 3, 8, 19])
@simulated(RoundRobin)
async def test_the_next_one_that_asks(ctx, dut, count):
    rng, last = random.Random(count), count - 1
    for _ in range(300):
        requests, taken = rng.randrange(1, 1 << count), rng.random() < 0.7
        drive(ctx, dut, requests=requests, taken=taken)
        *_, grant = await ctx.tick().sample(dut.grant)
        assert grant == next_turn(last, requests, count)
        last = grant if taken else last
