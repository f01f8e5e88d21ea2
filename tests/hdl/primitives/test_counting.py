import pytest
from amaranth.lib import data

from neuroncore_rtl.hdl.primitives.counting import Counting
from tests.hdl.simulation import WARM_UP, drive, simulated

SEED = 20261124
SHAPE = data.StructLayout({"events": 5, "bytes": 7, "nothing": 3})
AMOUNTS = {"events": 1, "bytes": 4}


def counting():
    return Counting(SHAPE, AMOUNTS)


@pytest.mark.parametrize("warm_up", [0, WARM_UP])
@simulated(counting)
async def test_every_cycle_adds_its_amounts(ctx, unit, warm_up, rng):
    sums = dict.fromkeys(SHAPE.members, 0)
    for _ in range(300):
        assert {name: ctx.get(unit.counters[name]) for name in sums} == sums
        amounts = {name: int(rng.integers(1 << bits)) for name, bits in AMOUNTS.items()}
        drive(ctx, unit, amounts=amounts)
        await ctx.tick()
        for name, amount in amounts.items():
            sums[name] = (sums[name] + amount) % (1 << SHAPE[name].width)
