from collections import deque

import pytest
from amaranth.lib import data

from neuroncore_rtl.hdl.primitives.fifo import BufferedFifo, BypassFifo, Fifo, StreamRegister
from neuroncore_rtl.hdl.verilog.text import convert
from tests.hdl.simulation import WARM_UP, drive, simulated
from tests.hdl.streams import play

ENTRY = data.StructLayout({"low": 4, "high": 12})
DEPTH = 4
KINDS = pytest.mark.parametrize(("kind", "latency"), [(BypassFifo, 0), (Fifo, 1), (BufferedFifo, 2)])


@pytest.mark.parametrize(
    ("kind", "depth", "latency", "interval"),
    [(BypassFifo, [DEPTH], 0, 1), (Fifo, [DEPTH], 1, 1), (BufferedFifo, [DEPTH], 2, 1), (Fifo, [1], 1, 2)]
    + [(StreamRegister, [], 1, 1)],
)
@pytest.mark.parametrize("stall", [0, 0.5])
def test_typed_payloads_are_delivered_in_order_with_the_latency(kind, depth, latency, interval, stall):
    dut, count = kind(ENTRY, *depth), 200
    assert dut.o.payload.shape() == ENTRY
    payloads = [0x1357 * n & 0xFFFF for n in range(count)]
    played = play(dut, {"i": payloads}, {"o": count}, stall=stall)
    assert played.payloads["o"] == payloads
    assert stall or played.cycles["o"] == [latency + interval * n for n in range(count)]


@KINDS
@simulated(lambda kind: kind(16, DEPTH))
async def test_there_is_room_for_its_depth(ctx, dut, kind, latency):
    ctx.set(dut.i.valid, 1)
    *_, taken = zip(*[await ctx.tick().sample(dut.i.ready) for _ in range(DEPTH + latency + 2)], strict=True)
    assert sum(taken) == DEPTH == ctx.get(dut.level)


@pytest.mark.parametrize(("push", "pop"), [(0.9, 0.3), (0.3, 0.9), (0.7, 0.7)])
@simulated(lambda: BufferedFifo(16, DEPTH), warm_up=WARM_UP)
async def test_every_port_in_every_cycle(ctx, dut, push, pop, py_rng):
    # One entry is in the output register, the others in a memory with a read latency of one cycle.
    memory, shown, full = deque(), None, 0
    for _ in range(400):
        valid, ready, entry = py_rng.random() < push, py_rng.random() < pop, py_rng.getrandbits(16)
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
    assert (full > 50) == (push > pop)


def test_one_place_is_verilog_without_ranges_of_no_bits():
    assert "[-1:0]" not in convert(Fifo(16, 1), "fifo", None)
