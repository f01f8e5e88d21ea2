import random

import pytest

from neuroncore_rtl.hdl.link import flit, wire
from tests.hdl.simulation import simulated


@pytest.mark.parametrize("latency", [1, 2, 5])
@simulated(lambda latency: wire.Wire(1, latency))
async def test_delivery(ctx, dut, latency):
    rng, width = random.Random(latency), flit.frame_layout(1).size
    sent = [rng.getrandbits(width) for _ in range(400)]
    for cycle, frame in enumerate(sent):
        flip, drop, repeat, cut = (rng.random() < 0.2 for _ in range(4))
        flip_bit = rng.choice((0, width - 1, width, (1 << wire.FLIP_BITS) - 1, rng.randrange(width)))
        ctx.set(dut.i.as_value(), frame)
        ctx.set(dut.disturbance, {"flip": flip, "flip_bit": flip_bit, "drop": drop, "repeat": repeat, "cut": cut})
        source = cycle - latency - repeat
        assert ctx.get(dut.present) == (source >= 0 and not drop and not cut)
        if source >= 0:
            turned = 1 << flip_bit if flip and flip_bit < width else 0
            assert ctx.get(dut.o.as_value()) == sent[source] ^ turned
        await ctx.tick()
