from collections import deque

import pytest
from amaranth.lib import data

from neuroncore_rtl.hdl.primitives.skid_buffer import SkidBuffer
from tests.hdl.simulation import WARM_UP, drive, simulated

ENTRY = data.StructLayout({"low": 4, "high": 12})
SLOTS = 2


@pytest.mark.parametrize(("push", "pop"), [(0.9, 0.3), (0.3, 0.9), (0.7, 0.7), (1, 0.5)])
@simulated(lambda: SkidBuffer(ENTRY), warm_up=WARM_UP)
async def test_every_port_in_every_cycle(ctx, dut, push, pop, py_rng):
    # `i.ready` and `o.valid` must not depend on the other side within a cycle.
    queue, levels = deque(), []
    for _ in range(400):
        entry = py_rng.getrandbits(16)
        ready, shown = len(queue) < SLOTS, queue[0] if queue else None
        last = py_rng.random() < push, py_rng.random() < pop
        for valid, takes in ((False, False), (True, False), (False, True), last):
            drive(ctx, dut.i, valid=valid, payload=ENTRY.from_bits(entry))
            drive(ctx, dut.o, ready=takes)
            assert (ctx.get(dut.i.ready), ctx.get(dut.o.valid)) == (ready, bool(queue))
            assert shown is None or ctx.get(dut.o.payload.as_value()) == shown
        levels.append(len(queue))
        await ctx.tick()
        if queue and takes:
            queue.popleft()
        if valid and ready:
            queue.append(entry)
    assert set(levels) == {0, 1, 2}
