"""PSUM's storage: sums that are added or overwrite, the least spacing between them, and everyone else's way to it."""

import numpy as np
import pytest
from amaranth import Value

from neuroncore_rtl.golden.arith import add_fp32
from neuroncore_rtl.hdl.memory.psum import Psum, PsumWrite
from neuroncore_rtl.spec.config import PSUM_WORDS
from tests.hdl.simulation import simulate

SEED = 1977


def random_cases(rng, spacing, count):
    """Return (cycle, address, accumulate, integer, sum) of updates, every word used again after `spacing` cycles."""
    cases, free_at, cycle = [], {}, 0
    while len(cases) < count:
        address = int(rng.choice([0, 1, 511, 512, 4095]))
        if free_at.get(address, 0) <= cycle and rng.random() < 0.8:
            # A word stays FP32 or INT32.
            integer = address < 2
            value = (
                float(rng.integers(-(1 << 24), 1 << 24))
                if integer
                else float(rng.standard_normal() * 2.0 ** rng.integers(-3, 4))
            )
            bits = int(np.float32(value).view(np.uint32))
            cases.append((cycle, address, int(rng.random() < 0.7), int(integer), bits))
            free_at[address] = cycle + spacing
        cycle += 1
    return cases


def run(add_latency, cases):
    """Return what updates left, by their cycle, read at the first cycle in which it can be; without the reads that had
    to give way, which happens exactly where an update reads the same bank."""
    psum = Psum(1, add_latency)
    by_cycle = {case[0]: case for case in cases}
    last = cases[-1][0] + psum.spacing + 2
    left = {}

    async def bench(ctx):
        taken = False
        for cycle in range(last + 1):
            case, before = by_cycle.get(cycle), by_cycle.get(cycle - 1)
            ctx.set(psum.valid, case is not None)
            if case is not None:
                write = {"address": case[1], "accumulate": case[2], "integer": case[3], "partitions": 1}
                ctx.set(Value.cast(psum.write), PsumWrite.const(write).as_bits())
            ctx.set(psum.sums, before[4] if before else 0xDEADBEEF)
            if taken:
                left[cycle - 1 - psum.spacing] = ctx.get(psum.reads.data)
            readable = by_cycle.get(cycle - psum.spacing)
            ctx.set(psum.reads.valid, readable is not None)
            if readable is not None:
                ctx.set(psum.reads.address, 4 * readable[1])
                meets = case is not None and case[2] and case[1] // PSUM_WORDS == readable[1] // PSUM_WORDS
                assert ctx.get(psum.reads.ready) == (not meets)
            taken = readable is not None and bool(ctx.get(psum.reads.ready))
            await ctx.tick()

    simulate(psum, bench)
    return left


def expected_of(cases):
    memory, expected = {}, {}
    for cycle, address, accumulate, integer, bits in cases:
        value = np.array([bits], np.uint32).view(np.float32)
        old = np.array([memory.get(address, 0)], np.uint32)
        if integer:
            word = value.astype(np.int64) + (old.view(np.int32) if accumulate else 0)
        else:
            word = add_fp32(old.view(np.float32), value).view(np.uint32) if accumulate else value.view(np.uint32)
        memory[address] = int(word[0]) & 0xFFFFFFFF
        expected[cycle] = memory[address]
    return expected


@pytest.mark.parametrize("add_latency", (1, 2, 3, 4))
def test_sums_are_added_and_overwrite_with_the_least_spacing(add_latency, rng):
    spacing = Psum.spacing_of(add_latency)
    cases = random_cases(rng, spacing, 200)
    tight = sum(
        any(other[1] == case[1] and other[0] == case[0] - spacing for other in cases[max(0, i - spacing) : i])
        for i, case in enumerate(cases)
    )
    print(f"{len(cases)} updates, {tight} of them exactly {spacing} cycles behind the one before on their word")
    assert tight > 10
    left, expected = run(add_latency, cases), expected_of(cases)
    assert len(cases) / 2 < len(left) < len(cases)
    assert left == {cycle: expected[cycle] for cycle in left}


@pytest.mark.parametrize("add_latency", (1, 2, 3, 4))
def test_the_spacing_is_needed(add_latency):
    """One cycle less, and an update is lost: the hazard rule is not longer than it must be."""
    spacing = Psum.spacing_of(add_latency) - 1
    one = int(np.float32(1).view(np.uint32))
    cases = [(0, 7, 0, 0, one), (spacing, 7, 1, 0, one), (4 * spacing, 7, 1, 0, one)]
    assert expected_of(cases)[4 * spacing] == int(np.float32(3).view(np.uint32))
    assert run(add_latency, cases)[4 * spacing] == int(np.float32(2).view(np.uint32))


def test_words_are_written_from_outside_byte_by_byte_beside_the_sums(rng):
    """Random writes of bytes, which give way exactly where a sum is written to the same bank; then all is read back."""
    psum, count, columns = Psum(3, 1), 300, 3
    writes_sum = psum.spacing - 1  # cycles from `valid` to the write
    memory = np.zeros((columns, 4096, 4), np.uint8)
    words = [0, 1, 511, 512, 4095]
    updates = {cycle: int(rng.choice(words)) for cycle in range(count) if rng.random() < 0.5}
    stalled = 0

    async def bench(ctx):
        nonlocal stalled
        for cycle in range(count + psum.spacing):
            ctx.set(psum.valid, cycle in updates)
            write = {"address": updates.get(cycle, 0), "partitions": 2}
            ctx.set(Value.cast(psum.write), PsumWrite.const(write).as_bits())
            ctx.set(psum.sums, sum((cycle + (column << 8)) << 32 * column for column in range(columns)))
            address, enable, mask = int(rng.choice(words)), int(rng.integers(8)), int(rng.integers(16))
            octets = rng.integers(0, 256, (columns, 4), np.uint8)
            ctx.set(psum.writes.valid, 1)
            ctx.set(psum.writes.address, 4 * address)
            ctx.set(psum.writes.enable, enable)
            ctx.set(psum.writes.mask, mask)
            ctx.set(psum.writes.data, int.from_bytes(octets.tobytes(), "little"))
            updated = updates.get(cycle - writes_sum)
            meets = updated is not None and updated // PSUM_WORDS == address // PSUM_WORDS
            assert ctx.get(psum.writes.ready) == (not meets)
            stalled += meets
            if not meets:
                chosen = np.array([[enable >> c & mask >> b & 1 for b in range(4)] for c in range(columns)], bool)
                memory[:, address] = np.where(chosen, octets, memory[:, address])
            if updated is not None:
                for column in range(2):
                    word = cycle - writes_sum + 1 + (column << 8)
                    memory[column, updated] = np.frombuffer(word.to_bytes(4, "little"), np.uint8)
            await ctx.tick()
        ctx.set(psum.writes.valid, 0)
        ctx.set(psum.reads.valid, 1)
        for address in words:
            ctx.set(psum.reads.address, 4 * address)
            await ctx.tick()
            seen = ctx.get(psum.reads.data).to_bytes(4 * columns, "little")
            assert seen == memory[:, address].tobytes()

    simulate(psum, bench)
    print(f"{count} writes, {stalled} of them had to wait")
    assert count / 10 < stalled < count / 2
