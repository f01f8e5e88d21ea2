# amaranth: UnusedElaboratable=no

"""When the watchdog barks, to the cycle, and that it says the same thing ever after."""

import pytest

from neuroncore_rtl.hdl.queue.watchdog import Watchdog
from neuroncore_rtl.spec.isa import Cause
from tests.hdl.simulation import simulate

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


@pytest.mark.parametrize("waiting", [0b000, 0b001, 0b101])
@pytest.mark.parametrize("core", [0, 5, 127])
def test_a_core_that_is_waited_for_is_named_before_semaphores(waiting, core):
    """The record is the collective's, even if another one of its queue waits; nobody is named while something moves."""
    limit = 7
    dut = Watchdog(3, collective=2)

    async def bench(ctx):
        ctx.set(dut.limit, limit)
        ctx.set(dut.busy, 0b101)
        ctx.set(dut.waiting, waiting)
        ctx.set(dut.peer, {"valid": 1, "core": core})
        ctx.set(dut.peer_address, 0x80_0000_0080)
        for queue in range(3):
            ctx.set(dut.addresses[queue], 128 * (queue + 1))
        for _ in range(5):
            ctx.set(dut.progress, 0)
            await ctx.tick().repeat(limit)
            ctx.set(dut.progress, 1)
            await ctx.tick()
            assert not ctx.get(dut.error.valid)
        ctx.set(dut.progress, 0)
        await ctx.tick().repeat(limit + 1)
        wanted = {"valid": 1, "queue": 2, "cause": Cause.STUCK, "address": 0x80_0000_0080, "detail": 1 << 8 | core}
        for _ in range(2):
            error = ctx.get(dut.error)
            assert {name: error[name] for name in wanted} == wanted
            ctx.set(dut.peer, {"valid": 0, "core": 3})
            await ctx.tick().repeat(limit + 2)

    simulate(dut, bench)


@pytest.mark.parametrize("waiting", [0b000, 0b010])
def test_a_collective_that_waits_for_no_core_is_like_every_record(waiting):
    dut = Watchdog(3, collective=2)

    async def bench(ctx):
        ctx.set(dut.busy, 0b110)
        ctx.set(dut.waiting, waiting)
        ctx.set(dut.peer.core, 9)
        ctx.set(dut.peer_address, 0x5000)
        for queue in range(3):
            ctx.set(dut.addresses[queue], 128 * (queue + 1))
        ctx.set(dut.shortages[1], dut.shortages[1].shape().from_bits(DETAIL))
        await ctx.tick()
        error = ctx.get(dut.error)
        cause, detail = (Cause.WATCHDOG, DETAIL) if waiting else (Cause.STUCK, 0)
        assert (error.valid, error.queue, error.cause, error.address, error.detail) == (1, 1, cause, 256, detail)

    simulate(dut, bench)
