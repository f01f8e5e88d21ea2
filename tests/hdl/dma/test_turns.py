"""Turns of runs: one engine at a time, round robin, a minimum time apart."""

import random

import pytest

from neuroncore_rtl.hdl.dma.turns import RunTurns
from tests.hdl.simulation import drive, next_turn, simulated


@pytest.mark.parametrize(("count", "interval"), [(1, 1), (3, 1), (4, 2), (16, 26)])
@simulated(RunTurns)
async def test_turns_go_round_and_are_apart(ctx, dut, count, interval):
    rng, last, due, given = random.Random(count), count - 1, 0, 0
    for cycle in range(100 * interval):
        requests = rng.getrandbits(count) & rng.getrandbits(count)
        drive(ctx, dut, requests=requests)
        *_, turns = await ctx.tick().sample(dut.turns)
        served = requests and cycle >= due
        last = next_turn(last, requests, count) if served else last
        due = cycle + interval if served else due
        given += bool(served)
        assert turns == (1 << last if served else 0)
    assert given >= 10
