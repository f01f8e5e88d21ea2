import pytest

from neuroncore_rtl.hdl.collective.loader import CollectiveLoader
from neuroncore_rtl.hdl.dma.job import BURST_BEATS
from tests.hdl.collective.test_datapath_memory import FP32, TRIED, line, operation
from tests.hdl.simulation import drive, simulated, slow

LINK_BYTES, HBM_BYTES = TRIED


@pytest.mark.parametrize("words", [255, *slow((1 << 18) + (1 << 16) - 1)])
@simulated(lambda: CollectiveLoader(*TRIED))
async def test_a_load_ends_after_its_last_beat(ctx, dut, words):
    axi, parts, elsewhere = dut.axi, HBM_BYTES // LINK_BYTES, 1 << 32
    ops = [operation(3, FP32, elsewhere), operation(4 * words, FP32, 0)]  # the last one first
    ends = [line(n) for n in range(parts * (words - 20), parts * words + 1)]
    ends += [line(parts * words + 1) & 0xFFFF_FFFF]
    drive(ctx, dut.ops, payload=ops.pop(), valid=1)
    drive(ctx, dut, **{"axi.ar.ready": 1, "beats.ready": 1})
    await ctx.tick().repeat(10)
    delivered = 0
    while delivered < words - 2 * dut.words:
        for valid in (1, 0):
            ctx.set(axi.r.valid, valid)
            await ctx.tick().repeat(BURST_BEATS)
        delivered += BURST_BEATS
    bursts, beats, requested = [], [], delivered + BURST_BEATS
    for _ in range(8 * dut.words):
        ctx.set(axi.r.valid, delivered < requested)
        ctx.set(axi.r.payload.data, sum(line(parts * delivered + n) << 8 * LINK_BYTES * n for n in range(parts)))
        *_, requests, burst, taken, valid_beat, beat = await ctx.tick().sample(
            axi.ar.valid, axi.ar.payload, dut.ops.ready, dut.beats.valid, dut.beats.payload
        )
        delivered += delivered < requested
        if requests:
            bursts.append((burst.addr, burst.len + 1))
            requested = burst.addr % elsewhere // HBM_BYTES + burst.len + 1 + words * (burst.addr >= elsewhere)
        if taken:
            drive(ctx, dut.ops, valid=bool(ops), payload=ops.pop() if ops else {})
        beats += [beat] * valid_beat
    last = (words - 1) // BURST_BEATS * BURST_BEATS
    assert bursts[-2:] == [(last * HBM_BYTES, words - last), (elsewhere, 1)]
    assert beats[-len(ends) :] == ends and ctx.get(dut.idle)
