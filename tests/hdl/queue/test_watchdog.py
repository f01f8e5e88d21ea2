# amaranth: UnusedElaboratable=no

"""When the watchdog barks, to the cycle, and that it says the same thing ever after."""

import pytest

from hdl.queue.watchdog import Watchdog
from spec.isa import Cause
from tests.hdl.queue.queues import simulate

DETAIL = 0x12_3456_07


@pytest.mark.parametrize("limit", [0, 1, 7])
@pytest.mark.parametrize("waiting", [0b000, 0b100])
def test_the_first_report_stays(limit, waiting):
    dut = Watchdog(3)

    async def bench(ctx):
        ctx.set(dut.limit, limit)
        ctx.set(dut.waiting, waiting)
        ctx.set(dut.shortages[2], dut.shortages[2].shape().from_bits(DETAIL))
        for queue in range(3):
            ctx.set(dut.addresses[queue], 128 * (queue + 1))
        await ctx.tick().repeat(20)  # nothing to do
        ctx.set(dut.busy, 0b110)
        ctx.set(dut.progress, 1)
        await ctx.tick().repeat(20)
        ctx.set(dut.progress, 0)
        for _ in range(limit + 1):
            assert not ctx.get(dut.error.valid)
            await ctx.tick()
        wanted = {"valid": 1, "queue": 1, "cause": Cause.STUCK, "address": 256, "detail": 0}
        if waiting:
            wanted |= {"queue": 2, "cause": Cause.WATCHDOG, "address": 384, "detail": DETAIL}
        for busy in (0b110, 0b111, 0b000, 0b001):
            error = ctx.get(dut.error)
            assert {name: error[name] for name in wanted} == wanted
            ctx.set(dut.busy, busy)
            ctx.set(dut.waiting, busy & 1)
            await ctx.tick().repeat(limit + 2)

    simulate(dut, bench)
