"""Typed FIFOs: order, latency, room, and an entry's fields."""

import random

import pytest
from amaranth.lib import data

from neuroncore_rtl.hdl.fifo import BufferedFifo, BypassFifo, Fifo
from tests.hdl.simulation import offer, simulate, take

ENTRY = data.StructLayout({"low": 4, "high": 12})
DEPTH = 4

KINDS = pytest.mark.parametrize(("kind", "latency"), [(BypassFifo, 0), (Fifo, 1), (BufferedFifo, 2)])


@KINDS
def test_latency(kind, latency):
    dut = kind(ENTRY, DEPTH)

    async def bench(ctx):
        ctx.set(dut.o.ready, 1)
        ctx.set(dut.i.valid, 1)
        ctx.set(dut.i.payload, {"low": 3, "high": 0x123})
        for cycle in range(latency + 1):
            assert ctx.get(dut.o.valid) == (cycle == latency)
            if cycle == latency:
                assert ctx.get(dut.o.payload.high) == 0x123 and ctx.get(dut.o.payload.low) == 3
            await ctx.tick()
            ctx.set(dut.i.valid, 0)

    simulate(dut, bench)


@KINDS
@pytest.mark.parametrize("stall", [0, 0.5])
def test_everything_comes_in_order(kind, latency, stall):
    dut, count, pace = kind(16, DEPTH), 200, random.Random(1)

    async def write(ctx):
        await offer(ctx, dut.i, range(count), stall=stall, pace=pace)

    async def read(ctx):
        taken = await take(ctx, dut.o, count, stall=stall, pace=pace, limit=10 * count)
        assert [number for _, number in taken] == list(range(count))
        assert stall or taken[-1][0] + 1 == count + latency

    simulate(dut, read, background=[write])


@KINDS
def test_there_is_room_for_its_depth(kind, latency):
    dut = kind(16, DEPTH)

    async def bench(ctx):
        ctx.set(dut.i.valid, 1)
        *_, taken = zip(*[await ctx.tick().sample(dut.i.ready) for _ in range(DEPTH + latency + 2)], strict=True)
        assert sum(taken) == DEPTH == ctx.get(dut.level)

    simulate(dut, bench)
