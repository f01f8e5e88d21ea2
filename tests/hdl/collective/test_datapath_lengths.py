"""Loader and Storer: lengths in which one bit counts beside another, from some hundred elements to over a million."""

import pytest

from neuroncore_rtl.hdl.collective.loader import CollectiveLoader
from neuroncore_rtl.hdl.dma.job import BURST_BEATS
from tests.hdl.collective.test_datapath_memory import BF16, FP32, INT32, TRIED, line, load, operation, store
from tests.hdl.simulation import drive, put, simulated
from tests.hdl.slow import slow

LINK_BYTES, HBM_BYTES = TRIED


@pytest.mark.parametrize("transfer", [load, store])
def test_every_bit_of_a_length_counts_beside_the_others(transfer):
    """All are set at once, down to those of a word, of a beat, or of an element."""
    lengths = [(252, FP32), (254, INT32), (255, FP32), (504, BF16), (511, BF16)]
    transfer(*TRIED, [operation(length, dtype, 1024 * n) for n, (length, dtype) in enumerate(lengths)])


@pytest.mark.parametrize("words", [255, *slow((1 << 18) + (1 << 16) - 1)])
@simulated(lambda: CollectiveLoader(*TRIED))
async def test_a_load_ends_behind_its_last_beat(ctx, dut, words):
    """With a word, and an even number of beats; what is behind it is right, too. Words come burst by burst, as fast as
    the link takes them on average, and those at the end as they are asked for."""
    axi, parts, elsewhere = dut.axi, HBM_BYTES // LINK_BYTES, 1 << 32
    ops = [operation(4 * words, FP32, 0), operation(3, FP32, elsewhere)]
    ends = [line(n) for n in range(parts * (words - 20), parts * words + 1)]
    ends += [line(parts * words + 1) & 0xFFFF_FFFF]
    drive(ctx, dut.ops, payload=ops[0], valid=1)
    drive(ctx, axi.ar, ready=1)
    drive(ctx, dut.beats, ready=1)
    await ctx.tick().repeat(10)
    given = 0
    while given < words - 2 * dut.words:
        for valid in (1, 0):
            ctx.set(axi.r.valid, valid)
            await ctx.tick().repeat(BURST_BEATS)
        given += BURST_BEATS
    bursts, beats, asked, number = [], [], given + BURST_BEATS, 0
    for _ in range(8 * dut.words):
        ctx.set(axi.r.valid, given < asked)
        ctx.set(axi.r.payload.data, sum(line(parts * given + n) << 8 * LINK_BYTES * n for n in range(parts)))
        *_, asks, burst, taken, come, beat = await ctx.tick().sample(
            axi.ar.valid, axi.ar.payload, dut.ops.ready, dut.beats.valid, dut.beats.payload.data
        )
        given += given < asked
        if asks:
            bursts.append((burst.addr, burst.len + 1))
            asked = burst.addr % elsewhere // HBM_BYTES + burst.len + 1 + words * (burst.addr >= elsewhere)
        if taken:
            number += 1
            drive(ctx, dut.ops, payload=ops[number % len(ops)], valid=number < len(ops))
        if come:
            beats.append(beat)
    last = (words - 1) // BURST_BEATS * BURST_BEATS
    assert bursts[-2:] == [(last * HBM_BYTES, words - last), (elsewhere, 1)]
    assert beats[-len(ends) :] == ends and ctx.get(dut.idle)


@pytest.mark.parametrize("count", [257, *slow((1 << 18) + (1 << 15) - 9)])
@simulated(lambda: CollectiveLoader(*TRIED))
async def test_zeros_end_behind_their_last_beat(ctx, dut, count):
    """An odd number of beats, one a cycle: whoever counts them two and two in another order comes to another end."""
    drive(ctx, dut.axi.ar, ready=1)
    await put(ctx, dut.ops, operation(2 * count, FP32, 0, zero=1))
    await put(ctx, dut.ops, operation(4, FP32, 0))
    drive(ctx, dut.axi.r, payload={"data": line(1) << 8 * LINK_BYTES | line(0)}, valid=1)
    await ctx.tick()
    drive(ctx, dut.axi.r, valid=0)
    await ctx.tick().repeat(10)
    drive(ctx, dut.beats, ready=1)
    await ctx.tick().repeat(count - 50)
    beats = []
    for _ in range(60):
        *_, come, beat = await ctx.tick().sample(dut.beats.valid, dut.beats.payload.data)
        beats += [beat] if come else []
    assert beats == [0] * 50 + [line(0), line(1)] and ctx.get(dut.idle)
