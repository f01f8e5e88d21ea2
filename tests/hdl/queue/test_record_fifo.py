from collections import deque

import pytest
from amaranth.lib import data

from neuroncore_rtl.hdl.queue.record_fifo import RecordFifo
from neuroncore_rtl.spec.isa import RECORD_BITS
from tests.hdl.queue.queues import beats
from tests.hdl.simulation import drive, expect, random_bits, simulated

RECORDS = 60


@pytest.mark.parametrize(
    ("size", "kept", "depth"),
    [(8, 700, 3), (16, 128, 1), (16, 128, 8), (32, 257, 2), (64, RECORD_BITS, 8), (128, 90, 1), (128, 90, 3)],
)
@simulated(lambda size, kept, depth: RecordFifo(data.StructLayout({"bits": kept, "error": 1}), size, depth))
async def test_the_stored_part_of_a_record_is_valid_a_cycle_after_its_last_beat(ctx, dut, size, kept, depth, rng):
    arriving, stored, remaining = deque(), deque(), RECORDS
    seen = full = 0
    while seen < RECORDS:
        if not arriving and remaining and len(stored) < depth and rng.random() < 0.8:
            record, error = random_bits(rng, RECORD_BITS), int(rng.random() < 0.3)
            arriving.extend(beats(record, error, size))
            whole, remaining = {"bits": record % (1 << kept), "error": error}, remaining - 1
        arrives = bool(arriving) and rng.random() < 0.7
        noise = {"data": random_bits(rng, 8 * size), "last": 1, "error": 1}
        beat = arriving.popleft() if arrives else noise
        ready = rng.random() < (0.5 if len(stored) == depth else 0.03)
        drive(ctx, dut, **{"beat.valid": arrives, "beat.payload": beat, "o.ready": ready})
        assert ctx.get(dut.o.valid) == bool(stored)
        if stored:
            expect(ctx, dut.o.payload, **stored[0])
        full += len(stored) == depth
        if stored and ready:
            stored.popleft()
            seen += 1
        if arrives and beat["last"]:
            stored.append(whole)
        await ctx.tick()
    assert full > 3
