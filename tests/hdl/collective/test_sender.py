"""Collective sender: the cycles of its beats at a limited rate."""

import pytest
from amaranth.sim import Simulator

from neuroncore_rtl.hdl.collective.sender import CollectiveSender

BYTES, BEATS, WINDOW = 32, 30, 64


@pytest.mark.parametrize("rate", [3, 10, 31, 0])
def test_beats_keep_to_the_rate(rate):
    sender = CollectiveSender(BYTES, cores=2, window=WINDOW, rate=rate)
    simulator = Simulator(sender)
    simulator.add_clock(1e-6)
    found = []

    async def drive(ctx):
        ctx.set(sender.granted, 1)  # half a window of credits of core 0, the first peer
        await ctx.tick()
        ctx.set(sender.granted, 0)
        ctx.set(sender.ops.payload, {"elements": BEATS * BYTES // 4, "load": 1})
        for signal in (sender.ops.valid, sender.load.valid, sender.o.ready):
            ctx.set(signal, 1)
        for cycle in range(BEATS * BYTES // (rate or BYTES) + 9):
            taken = ctx.get(sender.ops.ready)
            if ctx.get(sender.o.valid):
                found.append(cycle)
            await ctx.tick()
            if taken:
                ctx.set(sender.ops.valid, 0)

    simulator.add_testbench(drive)
    simulator.run()
    assert [cycle - found[0] for cycle in found] == [n * BYTES // (rate or BYTES) for n in range(BEATS)]
