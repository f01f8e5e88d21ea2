"""PSUM storage: the minimum spacing of updates, and byte writes. test_psum_traffic.py has a model of everything."""

from itertools import permutations

import numpy as np
import pytest
from amaranth import Value

from neuroncore_rtl.hdl.arith.add import Fp32Adder
from neuroncore_rtl.hdl.memory.psum import Psum, PsumWrite
from tests.hdl.simulation import drive, simulated

SEED = 1977

BANK = 512
"""Words per bank."""

WORDS = (0, 1, 511, 512, 4095)
"""Addresses of the used words."""


@pytest.mark.parametrize("add_latency", Fp32Adder.CUTS)
@simulated(lambda add_latency: Psum(1, BANK, add_latency))
async def test_with_less_spacing_an_update_is_lost(ctx, psum, add_latency):
    """1 is written, and added twice: a cycle too early, and then in time."""
    spacing = psum.spacing - 1
    ctx.set(psum.sums, int(np.float32(1).view(np.uint32)))
    for cycle in range(4 * spacing + psum.spacing):
        write = {"address": 7, "accumulate": cycle > 0, "partitions": {"first": 0, "end": 1}}
        ctx.set(Value.cast(psum.write), PsumWrite.const(write).as_bits())
        ctx.set(psum.valid, cycle in (0, spacing, 4 * spacing))
        await ctx.tick()
    drive(ctx, psum.reads, valid=1, address=4 * 7)
    await ctx.tick()
    assert ctx.get(psum.reads.data) == np.float32(2).view(np.uint32)


@simulated(lambda: Psum(3, BANK, 1))
async def test_byte_writes_stall_exactly_where_a_sum_is_written_to_the_same_bank(ctx, psum, rng):
    count, columns = 300, 3
    writes_sum = psum.spacing - 1  # cycles from `valid` to the write
    memory = np.zeros((columns, 4096, 4), np.uint8)
    updates = {cycle: int(rng.choice(WORDS)) for cycle in range(count) if rng.random() < 0.5}
    stalled = 0
    for cycle in range(count + psum.spacing):
        ctx.set(psum.valid, cycle in updates)
        write = {"address": updates.get(cycle, 0), "partitions": {"first": 1, "end": 3}}
        ctx.set(Value.cast(psum.write), PsumWrite.const(write).as_bits())
        ctx.set(psum.sums, sum((cycle + (column << 8)) << 32 * column for column in range(columns)))
        address, enable, mask = int(rng.choice(WORDS)), int(rng.integers(8)), int(rng.integers(16))
        octets = rng.integers(0, 256, (columns, 4), np.uint8)
        data = int.from_bytes(octets.tobytes(), "little")
        drive(ctx, psum.writes, valid=1, address=4 * address, enable=enable, mask=mask, data=data)
        updated = updates.get(cycle - writes_sum)
        conflict = updated is not None and updated // BANK == address // BANK
        assert ctx.get(psum.writes.ready) == (not conflict)
        stalled += conflict
        if not conflict:
            chosen = np.array([[enable >> c & mask >> b & 1 for b in range(4)] for c in range(columns)], bool)
            memory[:, address] = np.where(chosen, octets, memory[:, address])
        if updated is not None:
            for column in (1, 2):
                word = cycle - writes_sum + 1 + (column << 8)
                memory[column, updated] = np.frombuffer(word.to_bytes(4, "little"), np.uint8)
        await ctx.tick()
    ctx.set(psum.writes.valid, 0)
    ports = psum.reads, psum.shared_reads
    for pair in permutations(WORDS, 2):
        apart = pair[0] // BANK != pair[1] // BANK
        for port, address in zip(ports, pair, strict=True):
            drive(ctx, port, valid=apart or port is psum.reads, address=4 * address)
        await ctx.tick()
        for port, address in [*zip(ports, pair, strict=True)][: 1 + apart]:
            assert ctx.get(port.data).to_bytes(4 * columns, "little") == memory[:, address].tobytes()
    assert count / 10 < stalled < count / 2
