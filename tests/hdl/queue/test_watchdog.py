import pytest

from neuroncore_rtl.hdl.queue.watchdog import Watchdog
from neuroncore_rtl.spec.isa import Cause
from tests.hdl.simulation import drive, expect, pulse, simulated

QUEUES = 3
SHORTAGE = 0x12_3456_07


def set_up(ctx, dut, **ports):
    drive(ctx, dut, **ports)
    for queue in range(QUEUES):
        ctx.set(dut.addresses[queue], 128 * (queue + 1))
        ctx.set(dut.shortages[queue].as_value(), SHORTAGE + queue)


def lacks(queue):
    return {"queue": queue, "cause": Cause.WATCHDOG, "address": 128 * (queue + 1), "detail": SHORTAGE + queue}


STUCK = {"queue": 1, "cause": Cause.STUCK, "address": 256, "detail": 0}
"""Error of a record of queue 1 that does not wait."""


@pytest.mark.parametrize("limit", [0, 1, 7])
@pytest.mark.parametrize("waiting", [0b000, 0b100])
@simulated(lambda: Watchdog(QUEUES))
async def test_the_first_report_stays(ctx, dut, limit, waiting):
    set_up(ctx, dut, limit=limit, waiting=waiting)
    await ctx.tick().repeat(20)
    drive(ctx, dut, busy=0b110, progress=1)
    await ctx.tick().repeat(20)
    ctx.set(dut.progress, 0)
    for _ in range(limit + 2):
        assert not ctx.get(dut.error.valid)
        await ctx.tick()
    for busy in (0b110, 0b111, 0b000, 0b001):
        expect(ctx, dut.error, valid=1, **lacks(2) if waiting else STUCK)
        drive(ctx, dut, busy=busy, waiting=busy & 1)
        await ctx.tick().repeat(limit + 2)


@pytest.mark.parametrize("waiting", [0b000, 0b001, 0b101])
@pytest.mark.parametrize("core", [0, 5, 127])
@simulated(lambda: Watchdog(QUEUES, collective=2))
async def test_a_core_that_is_waited_for_is_named_before_semaphores(ctx, dut, waiting, core):
    """The error names the collective's record, even if another of its queue waits; progress prevents an error."""
    limit, address = 7, 0x80_0000_0080
    set_up(ctx, dut, limit=limit, busy=0b101, waiting=waiting, peer_address=address)
    ctx.set(dut.peer, {"valid": 1, "core": core})
    for _ in range(5):
        await ctx.tick().repeat(limit)
        await pulse(ctx, dut.progress)
        assert not ctx.get(dut.error.valid)
    await ctx.tick().repeat(limit + 2)
    for _ in range(2):
        expect(ctx, dut.error, valid=1, queue=2, cause=Cause.STUCK, address=address, detail=1 << 8 | core)
        ctx.set(dut.peer, {"valid": 0, "core": 3})
        await ctx.tick().repeat(limit + 2)


@pytest.mark.parametrize("waiting", [0b000, 0b010])
@simulated(lambda: Watchdog(QUEUES, collective=2))
async def test_a_collective_that_waits_for_no_core_is_treated_as_any_record(ctx, dut, waiting):
    set_up(ctx, dut, busy=0b110, waiting=waiting, peer_address=0x5000)
    ctx.set(dut.peer.core, 9)
    await ctx.tick().repeat(2)
    expect(ctx, dut.error, valid=1, **lacks(1) if waiting else STUCK)
