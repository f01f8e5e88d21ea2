import random

import pytest

from neuroncore_rtl.hdl.primitives.round_robin import RoundRobin
from tests.hdl.simulation import drive, next_turn, simulated


@pytest.mark.parametrize("count", [1, 2, 3, 8, 19])
@simulated(RoundRobin)
async def test_the_next_one_that_asks_or_after_a_reset_the_first(ctx, dut, reset, count):
    rng, last = random.Random(count), count - 1
    for _ in range(400):
        some, few = rng.getrandbits(count), rng.getrandbits(count)
        requests = rng.choice((some, some & few, 1 << rng.randrange(count)))
        taken = requests != 0 and rng.random() < 0.7
        drive(ctx, dut, requests=requests, taken=taken)
        ctx.set(reset, resets := rng.random() < 0.1)
        *_, grant, chosen = await ctx.tick().sample(dut.grant, dut.chosen)
        assert chosen == (1 << grant if requests else 0)
        assert not requests or grant == next_turn(last, requests, count)
        last = count - 1 if resets else grant if taken else last
