"""The wire: frames as they were sent, `latency` cycles later, but for what befalls them."""

import random

import pytest

from neuroncore_rtl.hdl.link.flit import frame_layout
from neuroncore_rtl.hdl.link.wire import FLIP_BITS, Wire
from tests.hdl.simulation import simulate


@pytest.mark.parametrize("latency", [1, 2, 5])
def test_delivery(latency):
    dut, width = Wire(1, latency), frame_layout(1).size
    rng = random.Random(latency)
    sent = [rng.getrandbits(width) for _ in range(400)]

    def frame(cycle):
        return sent[cycle] if cycle >= 0 else None

    async def bench(ctx):
        for cycle in range(len(sent)):
            flip, drop, repeat, cut = (rng.random() < 0.2 for _ in range(4))
            flip_bit = rng.choice((0, width - 1, width, (1 << FLIP_BITS) - 1, rng.randrange(width)))
            ctx.set(dut.i.as_value(), sent[cycle])
            ctx.set(dut.disturbance, {"flip": flip, "flip_bit": flip_bit, "drop": drop, "repeat": repeat, "cut": cut})
            wanted = frame(cycle - latency - repeat)
            assert ctx.get(dut.present) == (wanted is not None and not drop and not cut)
            if wanted is not None:
                turned = 1 << flip_bit if flip and flip_bit < width else 0
                assert ctx.get(dut.o.as_value()) == wanted ^ turned
            await ctx.tick()

    simulate(dut, bench)
