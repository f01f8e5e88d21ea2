"""Records of a queue come in beats, and are there when their last beat is."""

from collections import deque

import pytest
from amaranth.lib import data

from neuroncore_rtl.hdl.queue.record_fifo import RecordFifo
from neuroncore_rtl.spec.isa import RECORD_BITS
from tests.hdl.queue.queues import beats
from tests.hdl.simulation import drive, random_bits, simulated

RECORDS = 60


@pytest.mark.parametrize("depth", [1, 2, 3, 8])
@pytest.mark.parametrize(("size", "kept"), [(8, 700), (16, 128), (32, 257), (64, RECORD_BITS), (128, 90)])
@simulated(lambda size, kept, depth: RecordFifo(data.StructLayout({"bits": kept, "error": 1}), size, depth))
async def test_what_is_kept_of_a_record_comes_out_a_cycle_after_its_last_beat(ctx, dut, size, kept, depth, rng):
    coming, here, left = deque(), deque(), RECORDS
    seen = full = 0
    while seen < RECORDS:
        if not coming and left and len(here) < depth and rng.random() < 0.8:
            record, error = random_bits(rng, RECORD_BITS), int(rng.random() < 0.3)
            coming.extend(beats(record, error, size))
            whole, left = (record % (1 << kept), error), left - 1
        comes = bool(coming) and rng.random() < 0.7
        # What is at the port in between means nothing.
        noise = {"data": random_bits(rng, 8 * size), "last": 1, "error": 1}
        beat = coming.popleft() if comes else noise
        ready = int(rng.random() < (0.5 if len(here) == depth else 0.03))
        drive(ctx, dut.beat, valid=int(comes), payload=beat)
        ctx.set(dut.o.ready, ready)
        assert ctx.get(dut.o.valid) == bool(here)
        if here:
            out = ctx.get(dut.o.payload)
            assert (out.bits, out.error) == here[0]
        full += len(here) == depth
        if here and ready:
            here.popleft()
            seen += 1
        if comes and beat["last"]:
            here.append(whole)
        await ctx.tick()
    assert full > 3
