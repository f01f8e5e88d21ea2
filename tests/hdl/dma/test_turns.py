"""Turns of runs: one engine at a time, round robin, a minimum time apart."""

import random

import pytest

from neuroncore_rtl.hdl.dma.turns import RunTurns
from tests.hdl.simulation import drive, next_turn, simulated

CASES = [(1, 1, 0), (3, 1, 0), (4, 5, 20), (4, 5, 36), (16, 26, 0)]


@pytest.mark.parametrize(("count", "interval", "warm_up"), CASES)
@simulated(RunTurns)
async def test_turns_go_round_and_are_apart(ctx, dut, count, interval, warm_up):
    rng, last, due, given = random.Random(count), count - 1, 0, 0
    for cycle in range(100 * interval):
        every = (1 << count) - 1 if cycle < interval else 0  # the first turn shows the last one before it
        requests = every | rng.getrandbits(count) & rng.getrandbits(count)
        drive(ctx, dut, requests=requests)
        *_, turns = await ctx.tick().sample(dut.turns)
        served = requests and cycle >= due
        last = next_turn(last, requests, count) if served else last
        due = cycle + interval if served else due
        given += bool(served)
        assert turns == (1 << last if served else 0)
    assert given >= 10
