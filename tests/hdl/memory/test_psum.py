"""PSUM storage: accumulation and overwriting, the minimum spacing of updates, and accesses of other units."""

from collections import namedtuple
from itertools import permutations

import numpy as np
import pytest
from amaranth import Value

from neuroncore_rtl.golden.arith import add_fp32
from neuroncore_rtl.hdl.arith.add import Fp32Adder
from neuroncore_rtl.hdl.memory.psum import Psum, PsumWrite
from tests.hdl.simulation import drive, simulate, simulated

SEED = 1977

BANK = 512
"""Words per bank."""

WORDS = (0, 1, 511, 512, 4095)
"""Addresses of the used words; in tests of sums the first two hold integers."""

Update = namedtuple("Update", "cycle address accumulate integer bits")
"""An update in a cycle; `bits` are added, or overwrite the word if it does not accumulate."""


def bits_of(value: float) -> int:
    return int(np.float32(value).view(np.uint32))


def random_updates(rng, spacing, count):
    """Return updates that use a word again after at least `spacing` cycles."""
    updates, free_at, cycle = [], {}, 0
    while len(updates) < count:
        address = int(rng.choice(WORDS))
        if free_at.get(address, 0) <= cycle and rng.random() < 0.8:
            integer = address < 2  # a word stays FP32 or INT32
            value = rng.integers(-(1 << 24), 1 << 24) if integer else rng.standard_normal() * 2.0 ** rng.integers(-3, 4)
            updates.append(Update(cycle, address, int(rng.random() < 0.7), int(integer), bits_of(value)))
            free_at[address] = cycle + spacing
        cycle += 1
    return updates


def run_updates(add_latency, updates):
    """Return the result of each update, by its cycle, read by alternating ports as soon as possible.

    Reads that stall are missing; a read stalls exactly where an update reads the same bank.
    """
    psum = Psum(1, BANK, add_latency)
    by_cycle = {update.cycle: update for update in updates}

    async def bench(ctx):
        results, taken = {}, False
        for cycle in range(updates[-1].cycle + psum.spacing + 3):
            update, before = by_cycle.get(cycle), by_cycle.get(cycle - 1)
            ctx.set(psum.valid, update is not None)
            if update:
                write = {name: getattr(update, name) for name in ("address", "accumulate", "integer")}
                write["partitions"] = {"first": 0, "end": 1}
                ctx.set(Value.cast(psum.write), PsumWrite.const(write).as_bits())
            ctx.set(psum.sums, before.bits if before else 0xDEADBEEF)
            before, port = (psum.reads, psum.shared_reads)[:: 1 if cycle % 2 else -1]
            if taken:
                results[cycle - 1 - psum.spacing] = ctx.get(before.data)
            readable = by_cycle.get(cycle - psum.spacing)
            ctx.set(before.valid, 0)
            ctx.set(port.valid, readable is not None)
            if readable:
                ctx.set(port.address, 4 * readable.address)
                bank = readable.address // BANK
                conflict = update is not None and update.accumulate and update.address // BANK == bank
                assert ctx.get(port.ready) == (not conflict)
            taken = readable is not None and bool(ctx.get(port.ready))
            await ctx.tick()
        return results

    return simulate(psum, bench)


def expected_of(updates):
    memory, expected = {}, {}
    for cycle, address, accumulate, integer, bits in updates:
        value = np.array([bits], np.uint32).view(np.float32)
        old = np.array([memory.get(address, 0)], np.uint32)
        if integer:
            word = value.astype(np.int64) + (old.view(np.int32) if accumulate else 0)
        else:
            word = (add_fp32(old.view(np.float32), value) if accumulate else value).view(np.uint32)
        expected[cycle] = memory[address] = int(word[0]) & 0xFFFFFFFF
    return expected


@pytest.mark.parametrize("add_latency", Fp32Adder.CUTS)
def test_sums_are_added_and_overwrite_with_the_least_spacing(add_latency, rng):
    spacing = Psum.spacing_of(add_latency)
    updates = random_updates(rng, spacing, 200)
    used = {(update.cycle, update.address) for update in updates}
    tight = sum((cycle - spacing, address) in used for cycle, address in used)
    assert tight > 10
    results, expected = run_updates(add_latency, updates), expected_of(updates)
    assert len(updates) / 2 < len(results) < len(updates)
    assert results == {cycle: expected[cycle] for cycle in results}


@pytest.mark.parametrize("add_latency", Fp32Adder.CUTS)
def test_with_less_spacing_an_update_is_lost(add_latency):
    spacing = Psum.spacing_of(add_latency) - 1
    updates = [Update(place * spacing, 7, int(place > 0), 0, bits_of(1)) for place in (0, 1, 4)]
    assert expected_of(updates)[4 * spacing] == bits_of(3)
    assert run_updates(add_latency, updates)[4 * spacing] == bits_of(2)


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
