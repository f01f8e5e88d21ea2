"""Typed FIFOs: order, latency, room, and an entry's fields."""

from collections import deque

import pytest
from amaranth.lib import data

from neuroncore_rtl.hdl.primitives.fifo import BufferedFifo, BypassFifo, Fifo, StreamRegister
from neuroncore_rtl.hdl.verilog.text import convert
from tests.hdl.simulation import WORN, drive, simulated
from tests.hdl.streams import play

ENTRY = data.StructLayout({"low": 4, "high": 12})
DEPTH = 4

KINDS = pytest.mark.parametrize(("kind", "latency"), [(BypassFifo, 0), (Fifo, 1), (BufferedFifo, 2)])


@KINDS
@simulated(lambda kind: kind(ENTRY, DEPTH))
async def test_latency(ctx, dut, kind, latency):
    ctx.set(dut.o.ready, 1)
    drive(ctx, dut.i, valid=1, payload={"low": 3, "high": 0x123})
    for cycle in range(latency + 1):
        assert ctx.get(dut.o.valid) == (cycle == latency)
        if cycle == latency:
            assert ctx.get(dut.o.payload.high) == 0x123 and ctx.get(dut.o.payload.low) == 3
        await ctx.tick()
        ctx.set(dut.i.valid, 0)


@pytest.mark.parametrize(
    ("make", "latency", "interval"),
    [
        (lambda: BypassFifo(16, DEPTH), 0, 1),
        (lambda: Fifo(16, DEPTH), 1, 1),
        (lambda: BufferedFifo(16, DEPTH), 2, 1),
        (lambda: Fifo(16, 1), 1, 2),  # one place holds one entry after the other
        (lambda: StreamRegister(16), 1, 1),
    ],
)
@pytest.mark.parametrize("stall", [0, 0.5])
def test_everything_comes_in_order(make, latency, interval, stall):
    count = 200
    played = play(make(), {"i": range(count)}, {"o": count}, stall=stall)
    assert played.payloads["o"] == list(range(count))
    assert stall or played.cycles["o"] == [latency + interval * n for n in range(count)]


@KINDS
@simulated(lambda kind: kind(16, DEPTH))
async def test_there_is_room_for_its_depth(ctx, dut, kind, latency):
    ctx.set(dut.i.valid, 1)
    *_, taken = zip(*[await ctx.tick().sample(dut.i.ready) for _ in range(DEPTH + latency + 2)], strict=True)
    assert sum(taken) == DEPTH == ctx.get(dut.level)


@pytest.mark.parametrize(("comes", "goes"), [(0.9, 0.3), (0.3, 0.9), (0.7, 0.7)])
@simulated(lambda: BufferedFifo(16, DEPTH), worn=WORN)
async def test_every_port_in_every_cycle(ctx, dut, comes, goes, dice):
    """One entry waits at the output, the others in a memory; what is read from it is there in the next cycle."""
    memory, shown, full = deque(), None, 0
    for _ in range(400):
        valid, ready, entry = dice.random() < comes, dice.random() < goes, dice.getrandbits(16)
        drive(ctx, dut.i, valid=valid, payload=entry)
        drive(ctx, dut.o, ready=ready)
        takes, reads = len(memory) < DEPTH - 1, bool(memory) and (shown is None or ready)
        seen = tuple(map(ctx.get, (dut.i.ready, dut.o.valid, dut.level)))
        assert seen == (takes, shown is not None, len(memory) + (shown is not None))
        assert shown is None or ctx.get(dut.o.payload) == shown
        await ctx.tick()
        full += not takes
        shown = memory.popleft() if reads else None if ready else shown
        if valid and takes:
            memory.append(entry)
    assert (full > 50) == (comes > goes)


def test_one_place_is_verilog_without_ranges_of_no_bits():
    assert "[-1:0]" not in convert(Fifo(16, 1), "fifo", None)
